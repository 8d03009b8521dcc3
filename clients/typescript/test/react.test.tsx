import { container } from './dom.js'
import { StrictMode, type ReactNode } from 'react'
import { createRoot, type Root } from 'react-dom/client'
import { renderToString } from 'react-dom/server'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { Landfall, type BatchSummary, type FileProcessingStalled } from '../src/index.js'
import {
  LandfallProvider,
  useBatch,
  useFile,
  useFileProcessingEvents,
  useLandfall,
  useUpload,
  type Loaded,
  type ProcessingEvents,
  type UploadControl,
} from '../src/react.js'
import { Proxy, TestServer, until } from './server.js'

let server: TestServer
let proxy: Proxy
let direct: Landfall
let landfall: Landfall
let streams = 0
let open = 0
let root: Root | undefined
const complaints: unknown[][] = []

beforeAll(async () => {
  server = await TestServer.start()
  proxy = await Proxy.to(server.url)
  direct = new Landfall({ baseUrl: server.url, token: server.token() })
})
beforeEach(() => {
  streams = open = 0
  vi.spyOn(console, 'error').mockImplementation((...said) => void complaints.push(said))
  landfall = new Landfall({
    baseUrl: proxy.url,
    token: server.token(),
    fetch: async (input, init) => {
      if (!String(input).includes('/uploads/events')) return fetch(input, init)
      streams++
      open++
      init?.signal?.addEventListener('abort', () => open--, { once: true })
      return fetch(input, init)
    },
  })
})
afterEach(() => {
  root?.unmount()
  root = undefined
  expect(complaints.splice(0)).toEqual([])
})
afterAll(async () => {
  await proxy.close()
  await server.stop()
})

function show(element: ReactNode) {
  root ??= createRoot(container())
  root.render(
    <StrictMode>
      <LandfallProvider client={landfall}>{element}</LandfallProvider>
    </StrictMode>,
  )
}

const blob = (text: string) => new Blob([text])

describe('the hooks', () => {
  it('show a file as it changes, over one stream that closes in the end', async () => {
    const { fileId } = await direct.upload(blob('A text for the hooks.'), { name: 'hook.txt' }).uploaded()
    const seen: (string | undefined)[] = []
    const other: unknown[] = []
    function File({ onShow }: { onShow: (status: string | undefined) => void }) {
      onShow(useFile(fileId).file?.status)
      return null
    }
    show([1, 2, 3].map((n) => <File key={n} onShow={(status) => (n === 1 ? seen : other).push(status)} />))
    await until(() => seen.at(-1) === 'ready' && other.at(-1) === 'ready', 'the file')
    expect(seen[0]).toBeUndefined()
    expect(streams).toBe(1)
    await direct.delete('/api/v2/uploads/files/{fileId}', { params: { fileId } })
    await until(() => seen.at(-1) !== 'ready', 'the deletion')
    expect(open).toBe(1)
    root?.unmount()
    root = undefined
    await until(() => open === 0, 'the end of the stream')
  })

  it('report a file that does not exist, and take another one', async () => {
    let state: Loaded<unknown> | undefined
    function File({ id }: { id?: string }) {
      state = useFile(id)
      return null
    }
    show(<File id="00000000-0000-7000-8000-000000000000" />)
    await until(() => state?.error !== undefined, 'the error')
    expect(state).toMatchObject({ data: undefined, isLoading: false, error: { name: 'NotFoundError' } })
    const { fileId } = await direct.upload(blob('Another text.'), { name: 'another.txt' }).uploaded()
    show(<File id={fileId} />)
    await until(() => state?.data !== undefined, 'the other file')
    expect(state).toMatchObject({ data: { fileId }, error: undefined })
    show(<File />)
    await until(() => state?.data === undefined, 'nothing')
    expect(state).toMatchObject({ isLoading: false, error: undefined })
  })

  it('follow a batch to its end, over cut connections, and say once that it is complete', async () => {
    const batch = await direct.batch({ fileCount: 3 })
    const completed: BatchSummary[] = []
    let state: ProcessingEvents | undefined
    let status: string | undefined
    function Batch() {
      state = useFileProcessingEvents(batch.batchId, { onCompleted: (summary) => completed.push(summary) })
      status = useBatch(batch.batchId).batch?.status
      return null
    }
    show(<Batch />)
    await until(() => state?.progress !== null && state !== undefined, 'the batch')
    const uploads = [1, 2].map((n) => batch.upload(blob(`Text ${n}.`), { name: `${n}.txt` }))
    await Promise.all(uploads.map((upload) => upload.wait()))
    proxy.cutAll()
    uploads.push(batch.upload(blob('%PDF-1.7'), { name: 'broken.pdf', contentType: 'application/pdf' }))
    await until(() => state?.isCompleted === true && status === 'completed', 'the end')
    expect(completed).toMatchObject([{ total: 3, ready: 2, failed: 1 }])
    expect(state?.progress).toMatchObject({ total: 3, ready: 2, failed: 1, queued: 0 })
    expect(state?.statuses).toEqual({ [uploads[0]!.fileId!]: 'ready', [uploads[1]!.fileId!]: 'ready', [uploads[2]!.fileId!]: 'failed' })

    // Who comes later is told as well.
    const later: BatchSummary[] = []
    function Later() {
      useFileProcessingEvents(batch.batchId, { onCompleted: (summary) => later.push(summary) })
      return null
    }
    show(<Later />)
    await until(() => later.length > 0, 'the second report')
    expect(later).toHaveLength(1)
    expect(completed).toHaveLength(1)
  })

  it('say that a file has stalled', async () => {
    const batchId = '00000000-0000-7000-8000-000000000001'
    const events = [
      { id: 1, type: 'stream:open', data: {} },
      { id: 2, type: 'file:processing-stalled', data: { fileId: 'x', batchId, stage: 'embed', retryCount: 1 } },
      { id: 3, type: 'file:processing-stalled', data: { fileId: 'y', batchId: 'another', stage: 'embed', retryCount: 1 } },
    ]
    // A worker cannot be made to stall from here, so the server is played.
    landfall = new Landfall({
      baseUrl: 'http://played',
      fetch: async (input) => {
        if (!String(input).includes('/events')) return Response.json({ error: { code: 'BATCH_NOT_FOUND', message: '' } }, { status: 404 })
        const text = events.map((event) => `id: ${event.id}\ndata: ${JSON.stringify({ at: '2026-01-01T00:00:00Z', epoch: '', ...event })}\n\n`)
        return new Response(new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode(text.join(''))) }))
      },
    })
    const stalled: FileProcessingStalled[] = []
    function Batch() {
      useFileProcessingEvents(batchId, { onStalled: (event) => stalled.push(event) })
      return null
    }
    show(<Batch />)
    await until(() => stalled.length > 0, 'the event')
    expect(stalled.map((event) => event.data.fileId)).toEqual(['x'])
  })

  it('send a file', async () => {
    let control: UploadControl | undefined
    const states = new Set<string>()
    function Send() {
      control = useUpload({ attributes: { from: 'a hook' } })
      if (control.progress) states.add(control.progress.state)
      return null
    }
    show(<Send />)
    await until(() => control !== undefined, 'the component')
    expect(control?.progress).toBeUndefined()
    const upload = control!.start(blob('Sent by a hook.'), { name: 'sent.txt' })
    expect(await upload.uploaded()).toMatchObject({ attributes: { from: 'a hook' } })
    await until(() => control?.progress?.state === 'uploaded', 'the state')
    expect(control?.fileId).toBe(upload.fileId)
    expect(states).toContain('sending')
  })

  it('say that the token is not valid, and read again when it is', async () => {
    const { fileId } = await direct.upload(blob('Secret.'), { name: 'secret.txt' }).uploaded()
    let token = 'wrong'
    landfall = new Landfall({ baseUrl: server.url, token: () => token })
    let state: Loaded<unknown> | undefined
    function File() {
      state = useFile(fileId)
      return null
    }
    show(<File />)
    await until(() => state?.error !== undefined, 'the error')
    expect(state?.error).toMatchObject({ name: 'UnauthenticatedError' })
    token = server.token()
    state?.reload()
    await until(() => state?.data !== undefined, 'the file')
    expect(state?.error).toBeUndefined()
  })

  it('need a provider', () => {
    function Lost() {
      useLandfall()
      return null
    }
    expect(() => renderToString(<Lost />)).toThrow(/LandfallProvider/)
  })

  it('render on a server without a request', () => {
    let requests = 0
    const client = new Landfall({ baseUrl: 'http://nowhere', fetch: async () => (requests++, new Response()) })
    function Page() {
      const { isLoading } = useFile('x')
      const { progress } = useFileProcessingEvents('y')
      const upload = useUpload()
      return <p>{`${isLoading} ${progress} ${upload.progress}`}</p>
    }
    expect(renderToString(<LandfallProvider client={client}><Page /></LandfallProvider>)).toBe('<p>true null undefined</p>')
    expect(renderToString(<LandfallProvider options={{ baseUrl: '' }}><Page /></LandfallProvider>)).toContain('true')
    expect(requests).toBe(0)
  })
})
