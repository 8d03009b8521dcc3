// What a real server does rarely, or only after minutes: here it is played, and time is made to pass.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Landfall, NetworkError, type StreamEvent } from '../src/index.js'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }))
afterEach(() => void vi.useRealTimers())

const encode = (text: string) => new TextEncoder().encode(text)

interface Told {
  id: string | number
  type: string
  data?: Record<string, unknown>
}
const frame = ({ id, type, data = {} }: Told) =>
  `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify({ id: Number(id), type, at: '', epoch: '', data })}\n\n`

/** A server whose streams have these bytes, one list for each connection. The last one stays open. */
function stream(...connections: (string | Uint8Array)[][]) {
  const asked: (string | null)[] = []
  const fetch: typeof globalThis.fetch = async (input, init) => {
    asked.push(new URL(String(input)).searchParams.get('after'))
    const pieces = connections.shift() ?? []
    const isLast = connections.length === 0
    return new Response(new ReadableStream({
      start(controller) {
        for (const piece of pieces) controller.enqueue(typeof piece === 'string' ? encode(piece) : piece)
        if (!isLast) controller.close()
        init?.signal?.addEventListener('abort', () => {
          try {
            controller.error(init.signal?.reason)
          } catch {
            // It was closed before.
          }
        })
      },
    }))
  }
  return { asked, client: new Landfall({ baseUrl: 'http://played', fetch }) }
}

/** Reads so many events. */
async function read(client: Landfall, count: number): Promise<StreamEvent[]> {
  const seen: StreamEvent[] = []
  const reading = (async () => {
    for await (const event of client.events()) if (seen.push(event) >= count) break
  })()
  let isOver = false
  void reading.finally(() => (isOver = true))
  for (let n = 0; n < 400 && !isOver; n++) await vi.advanceTimersByTimeAsync(1000)
  if (!isOver) throw new Error(`Only ${seen.length} events came`)
  await reading
  return seen
}

const open = (id: number) => frame({ id, type: 'stream:open' })
const changed = (id: string | number, fileId = `file ${id}`) => frame({ id, type: 'file:status-changed', data: { fileId, to: 'ready' } })
const ids = (events: StreamEvent[]) => events.map((event) => event.id)

describe('a stream of events', () => {
  it('is read in pieces of any size, with comments, other line ends and letters that are cut in two', async () => {
    const text = `retry: 1000\r\n\r\n: heartbeat\n\n${open(1)}${changed(2, 'Zürich — 港')}`.replace(/\n/g, '\r\n').replace(/\r\r/g, '\r')
    const bytes = encode(text)
    for (const size of [1, 2, 3, 7, bytes.length]) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) => bytes.slice(n * size, (n + 1) * size))
      const [event] = await read(stream(pieces).client, 1)
      expect(event).toMatchObject({ id: 2, data: { fileId: 'Zürich — 港' } })
    }
  })

  it('drops a message that breaks off, and gets it from the next connection', async () => {
    const half = changed(3)
    const { client, asked } = stream([open(1), changed(2), half.slice(0, half.length - 1)], [open(2), changed(3)])
    expect(ids(await read(client, 2))).toEqual([2, 3])
    expect(asked).toEqual([null, '2'])
  })

  it('does not repeat what a server sends twice', async () => {
    const { client } = stream([open(1), changed(2), changed(3)], [open(1), changed(2), changed(3), changed(4)])
    expect(ids(await read(client, 3))).toEqual([2, 3, 4])
  })

  it('compares ids that a number cannot hold', async () => {
    const { client, asked } = stream([open(1), changed('900000000000000001')], [changed('900000000000000001'), changed('900000000000000002')])
    await read(client, 2)
    expect(asked).toEqual([null, '900000000000000001'])
  })

  it('begins at another place after a gap and after a reset', async () => {
    const gap = frame({ id: 50, type: 'stream:gap', data: { after: 100, resumesAfter: 50 } })
    const reset = frame({ id: 200, type: 'stream:reset', data: { reason: 'restored', after: 51, resumesAfter: 200 } })
    const { client, asked } = stream([open(100), changed(101)], [gap, changed(51)], [reset, open(200)], [open(200), changed(201)])
    expect((await read(client, 5)).map((event) => event.type)).toEqual([
      'file:status-changed', 'stream:gap', 'file:status-changed', 'stream:reset', 'file:status-changed',
    ])
    expect(asked).toEqual([null, '101', '51', '200'])
  })

  it('is opened again if nothing comes, not even a heartbeat', async () => {
    let connections = 0
    const client = new Landfall({
      baseUrl: 'http://played',
      fetch: async (_, init) =>
        new Response(new ReadableStream({
          start(controller) {
            init?.signal?.addEventListener('abort', () => controller.error(init.signal?.reason))
            controller.enqueue(encode(++connections === 1 ? open(5) : open(5) + changed(6)))
          },
        })),
    })
    const began = Date.now()
    expect(ids(await read(client, 1))).toEqual([6])
    expect(connections).toBe(2)
    expect(Date.now() - began).toBeGreaterThanOrEqual(40_000)
  })

  it('is given up with a server that never ends a line', async () => {
    const { client, asked } = stream([open(1), 'x'.repeat(5 * 1024 * 1024)], [open(1), changed(2)])
    expect(ids(await read(client, 1))).toEqual([2])
    expect(asked).toEqual([null, '1'])
  })
})

describe('an upload', () => {
  const ticket = (fileId: string) =>
    Response.json({ fileId, uploadUrl: 'https://store.example.com/bucket/key?signature=1', method: 'PUT', headers: { 'Content-Length': '4', 'x-amz-meta': 'a' }, expiresAt: '' })
  const file = (status: string) => Response.json({ fileId: 'f', fileName: 'a', status })

  it('goes to an object store as the ticket says, without the token, and with a new ticket if that has expired', async () => {
    const sent: { url: string; method: string; headers: Headers }[] = []
    let isFirst = true
    const client = new Landfall({
      baseUrl: 'http://played',
      token: 'secret',
      fetch: async (input, init) => {
        const url = String(input)
        sent.push({ url, method: init?.method ?? 'GET', headers: new Headers(init?.headers) })
        if (url.startsWith('https://store.example.com/')) {
          if (!isFirst) return new Response()
          isFirst = false
          return new Response('<Error><Code>AccessDenied</Code></Error>', { status: 403 })
        }
        if (url.endsWith('/files/init') || url.endsWith('/upload-url')) return ticket('f')
        return url.endsWith('/confirm') ? Response.json({ fileId: 'f', status: 'queued' }) : file('queued')
      },
    })
    await client.upload(new Blob(['text'], { type: 'text/plain' }), { name: 'a.txt' }).uploaded()
    const stored = sent.filter(({ url }) => url.startsWith('https://store'))
    expect(stored).toHaveLength(2)
    for (const { method, headers } of stored) {
      expect(method).toBe('PUT')
      expect([...headers.keys()]).toEqual(['x-amz-meta'])
    }
    expect(sent.filter(({ url }) => url.endsWith('/upload-url'))).toHaveLength(1)
  })

  it('is confirmed once, if only the response to it was lost', async () => {
    const calls: string[] = []
    const client = new Landfall({
      baseUrl: 'http://played',
      fetch: async (input, init) => {
        const path = new URL(String(input)).pathname.split('/').pop()!
        calls.push(`${init?.method} ${path}`)
        if (path === 'init') return ticket('f')
        if (path === 'confirm') throw new TypeError('lost')
        return path === 'key' ? new Response() : file('queued')
      },
    })
    const upload = client.upload(new Blob(['text']), { name: 'a.txt' })
    await vi.advanceTimersByTimeAsync(5000)
    expect(await upload.uploaded()).toMatchObject({ status: 'queued' })
    expect(calls).toEqual(['POST init', 'PUT key', 'POST confirm', 'GET f', 'GET f'])
  })

  it('is given up after five minutes without progress', async () => {
    let requests = 0
    const client = new Landfall({
      baseUrl: 'http://played',
      fetch: async () => {
        requests++
        throw new TypeError('no network')
      },
    })
    const upload = client.upload(new Uint8Array(5 * 1024 * 1024), { name: 'a.bin' })
    // Reading the bytes takes real time.
    await vi.waitFor(() => expect(upload.progress.state).toBe('waiting'))
    await vi.advanceTimersByTimeAsync(280_000)
    expect(['sending', 'waiting']).toContain(upload.progress.state)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(upload.progress.state).toBe('failed')
    await expect(upload.uploaded()).rejects.toBeInstanceOf(NetworkError)
    expect(requests).toBeLessThan(60)
  })

  it('opens a new connection if the old one does not move', async () => {
    const methods: string[] = []
    const location = 'http://played/api/v2/uploads/tus/f'
    const client = new Landfall({
      baseUrl: 'http://played',
      fetch: (_, init) => {
        const method = init?.method ?? 'GET'
        methods.push(method)
        if (method === 'POST') return Promise.resolve(new Response(null, { status: 201, headers: { Location: location } }))
        const size = String(5 * 1024 * 1024)
        if (method === 'HEAD') return Promise.resolve(new Response(null, { headers: { 'Upload-Offset': size, 'Upload-Length': size } }))
        if (method === 'GET') return Promise.resolve(file('queued'))
        return new Promise((_, reject) => init?.signal?.addEventListener('abort', () => reject(init.signal?.reason)))
      },
    })
    const upload = client.upload(new Uint8Array(5 * 1024 * 1024), { name: 'a.bin' })
    // Reading the bytes takes real time.
    await vi.waitFor(() => expect(methods).toContain('PATCH'))
    await vi.advanceTimersByTimeAsync(125_000)
    await upload.uploaded()
    expect(methods).toEqual(['POST', 'PATCH', 'HEAD', 'GET'])
  })

  it('waits as long as the server asks for', async () => {
    const at: number[] = []
    const began = Date.now()
    const client = new Landfall({
      baseUrl: 'http://played',
      maxRetries: 0,
      fetch: async (input) => {
        const path = new URL(String(input)).pathname.split('/').pop()!
        if (path !== 'init') return path === 'f' ? file('queued') : new Response('{}')
        at.push(Date.now() - began)
        if (at.length > 1) return ticket('f')
        return Response.json({ error: { code: 'TOO_MANY_REGISTRATIONS', message: '', retryable: true, details: {} } }, { status: 429, headers: { 'Retry-After': '90' } })
      },
    })
    const upload = client.upload(new Blob(['text']), { name: 'a.txt' })
    await vi.advanceTimersByTimeAsync(100_000)
    await upload.uploaded()
    expect(at[1]! - at[0]!).toBeGreaterThanOrEqual(90_000)
  })
})
