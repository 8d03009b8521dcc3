import { Window } from 'happy-dom'

// Only what React needs: `fetch`, `Blob` and signals stay those of Node, because the requests are real.
const window = new Window({ url: 'http://localhost/' })
Object.assign(globalThis, { window, document: window.document, navigator: window.navigator, HTMLElement: window.HTMLElement, Node: window.Node })

export function container(): HTMLElement {
  const element = window.document.createElement('div')
  window.document.body.append(element)
  return element as unknown as HTMLElement
}
