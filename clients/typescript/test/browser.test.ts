import { createServer, type Server } from 'node:http'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { chromium, type Browser, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Landfall } from '../src/index.js'
import { Proxy, TestServer, until } from './server.js'

const PACKAGE = join(import.meta.dirname, '..')
const MB = 1024 * 1024
let pages: Server
let origin: string
let server: TestServer
let proxy: Proxy
let browser: Browser
let landfall: Landfall

beforeAll(async () => {
  // A page of another origin, as most are.
  pages = createServer((request, response) => {
    if (request.url === '/browser.js') {
      response.setHeader('Content-Type', 'text/javascript')
      return response.end(readFileSync(join(PACKAGE, 'dist/browser.js')))
    }
    const page = /```html\n([\s\S]*?)```/.exec(readFileSync(join(PACKAGE, 'README.md'), 'utf8'))?.[1] ?? ''
    response.setHeader('Content-Type', 'text/html')
    return response.end(page.replace('https://files.example.com', proxy.url))
  })
  await new Promise<void>((done) => pages.listen(0, '127.0.0.1', done))
  const address = pages.address() as { port: number }
  origin = `http://127.0.0.1:${address.port}`
  server = await TestServer.start({ CORS_ORIGINS: origin })
  proxy = await Proxy.to(server.url)
  landfall = new Landfall({ baseUrl: server.url, token: server.token() })
  browser = await chromium.launch({
    executablePath: process.env['LANDFALL_TEST_CHROMIUM'] ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu'],
  })
})
afterAll(async () => {
  await browser?.close()
  pages?.close()
  await proxy?.close()
  await server?.stop()
})

async function openPage(): Promise<Page> {
  const page = await browser.newPage()
  await page.addInitScript((token) => localStorage.setItem('token', token), server.token())
  await page.goto(origin)
  return page
}

const item = (page: Page, n: number) => page.locator('li').nth(n)

describe('the page of the README', () => {
  it('sends files and shows what becomes of them', async () => {
    const page = await openPage()
    await page.setInputFiles('#files', [
      { name: 'letter.txt', mimeType: 'text/plain', buffer: Buffer.from('Dear reader, the ferry leaves at noon.') },
      { name: 'broken.pdf', mimeType: 'application/pdf', buffer: Buffer.from('%PDF-1.7 broken') },
    ])
    await item(page, 0).getByText('letter.txt: ready, 1 passages').waitFor()
    await item(page, 1).getByText('broken.pdf: PARSE_ERROR').waitFor()
    await page.close()
  })

  it('sends a large file over cut connections', async () => {
    const page = await openPage()
    const path = join(server.folder, 'large.unknown')
    writeFileSync(path, Buffer.alloc(12 * MB, Buffer.from([0, 1, 2, 200, 255])))
    proxy.cutAfter(5 * MB)
    await page.setInputFiles('#files', path)
    await item(page, 0).getByText('UNSUPPORTED_TYPE').waitFor()
    const { files } = await landfall.get('/api/v2/uploads/files', { query: { q: 'large.unknown' } })
    expect(files).toMatchObject([{ size: 12 * MB }])
    const left = await page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith('tus::')))
    expect(left).toEqual([])
    await page.close()
  })

  it('goes on with a file after it was loaded again', async () => {
    const page = await openPage()
    const script = `(async () => {
      const { Landfall } = await import('/browser.js')
      const landfall = new Landfall({ baseUrl: '${proxy.url}', token: localStorage.getItem('token') })
      const unfinished = await landfall.unfinishedUploads()
      const file = new File([new Uint8Array(${45 * MB})], 'again.unknown', { lastModified: 1 })
      const upload = landfall.upload(file)
      window.upload = upload
      return unfinished.map(({ name, size }) => ({ name, size }))
    })()`
    const progress = (expression: string) => page.waitForFunction(`(({ sent, state }) => ${expression})(window.upload.progress)`)
    expect(await page.evaluate(script)).toEqual([])
    await progress(`sent > ${20 * MB}`)
    proxy.goAway()
    await progress("state === 'waiting'")
    const { files } = await landfall.get('/api/v2/uploads/files', { query: { q: 'again.unknown' } })
    await page.reload()
    proxy.comeBack()
    const before = proxy.received
    expect(await page.evaluate(script)).toEqual([{ name: 'again.unknown', size: 45 * MB }])
    await progress("state === 'uploaded'")
    expect(proxy.received - before).toBeLessThan(44 * MB)
    expect(await page.evaluate('window.upload.fileId')).toBe(files[0]?.fileId)
    await until(async () => (await landfall.get('/api/v2/uploads/files', { query: { q: 'again.unknown' } })).files.length === 1, 'one file')
    await page.close()
  })
})
