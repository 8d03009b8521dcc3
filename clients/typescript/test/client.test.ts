import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  ConflictError,
  ForbiddenError,
  InvalidRequestError,
  Landfall,
  LandfallError,
  NetworkError,
  NotFoundError,
  QuotaExceededError,
  RateLimitedError,
  UnauthenticatedError,
  UnavailableError,
} from '../src/index.js'
import { TestServer, text } from './server.js'

let server: TestServer
let landfall: Landfall

beforeAll(async () => {
  server = await TestServer.start({ EVENT_STREAMS_PER_USER: '1', MAX_EVENT_STREAMS: '2' })
  landfall = new Landfall({ baseUrl: server.url, token: server.token() })
})
afterAll(() => server.stop())

/** The error of a request that has to fail. */
async function failure(request: Promise<unknown>): Promise<LandfallError> {
  const error = await request.then(() => undefined, (error: unknown) => error)
  expect(error).toBeInstanceOf(LandfallError)
  return error as LandfallError
}

const NOBODY = '00000000-0000-7000-8000-000000000000'
const register = (fileName: string, fileSize = 5) => ({ body: { fileName, fileSize } })

describe('requests', () => {
  it('fill parameters in, send bodies and read answers', async () => {
    const { fileId } = await landfall.post('/api/v2/uploads/files/init', { body: { fileName: 'ä & b.txt', fileSize: 3 } })
    const file = await landfall.get('/api/v2/uploads/files/{fileId}', { params: { fileId } })
    expect(file).toMatchObject({ fileId, fileName: 'ä & b.txt', status: 'registered' })
    const found = await landfall.get('/api/v2/uploads/files', { query: { q: 'ä & b', limit: 5 } })
    expect(found.files.map((file) => file.fileId)).toEqual([fileId])
    expect(await landfall.delete('/api/v2/uploads/files/{fileId}', { params: { fileId } })).toBeUndefined()
  })

  it('read what is not JSON as the caller wants it', async () => {
    const bytes = text(500)
    const upload = landfall.upload(bytes, { name: 'plain.txt' })
    const { fileId } = await upload.wait()
    const download = { params: { fileId } }
    const blob = await landfall.get('/api/v2/uploads/files/{fileId}/download', { ...download, as: 'blob' })
    expect(new Uint8Array(await blob.arrayBuffer())).toEqual(bytes)
    const response = await landfall.get('/api/v2/uploads/files/{fileId}/download', { ...download, as: 'response' })
    expect(response.headers.get('content-disposition')).toContain('plain.txt')
    await response.body?.cancel()
  })

  it('send bytes as they are', async () => {
    const { fileId, uploadUrl } = await landfall.post('/api/v2/uploads/files/init', register('raw.txt', 3))
    const query = Object.fromEntries(new URL(uploadUrl).searchParams) as never
    await landfall.put('/api/v2/uploads/blobs/{fileId}', { params: { fileId }, query, body: 'abc' as never })
    await landfall.post('/api/v2/uploads/files/{fileId}/confirm', { params: { fileId } })
    const sent = await landfall.get('/api/v2/uploads/files/{fileId}/download', { params: { fileId }, as: 'text' })
    expect(sent).toBe('abc')
  })

  it('throw before they are sent if a parameter is missing', async () => {
    const params = {} as { fileId: string }
    await expect(landfall.get('/api/v2/uploads/files/{fileId}', { params })).rejects.toThrow(TypeError)
  })

  it('need an address outside of a browser', async () => {
    await expect(new Landfall().get('/api/v2/uploads/files')).rejects.toThrow(/baseUrl/)
    expect(new Landfall().url('/api/v2/uploads/files/{fileId}', { params: { fileId: 'a/b' } })).toBe('/api/v2/uploads/files/a%2Fb')
  })

  it('page by themselves', async () => {
    const other = new Landfall({ baseUrl: server.url, token: server.token({ user: 'pages' }) })
    for (let n = 0; n < 7; n++) await other.post('/api/v2/uploads/files/init', register(`${n}.txt`))
    const names: string[] = []
    for await (const file of other.files({ limit: 3 })) names.push(file.fileName)
    expect(names.sort()).toEqual(['0.txt', '1.txt', '2.txt', '3.txt', '4.txt', '5.txt', '6.txt'])
    for (let n = 0; n < 3; n++) await other.batch({ fileCount: 1 })
    let batches = 0
    for await (const _ of other.batches({ limit: 2 })) batches++
    expect(batches).toBe(3)
    for await (const _ of other.notifications()) throw new Error('There are none')
  })

  it('search', async () => {
    await landfall.upload(new Blob(['The lighthouse keeper counts ships.']), { name: 'ships.txt' }).wait()
    const hits = []
    for await (const hit of landfall.search({ query: 'lighthouse', limit: 3 })) hits.push(hit.fileName)
    expect(hits).toContain('ships.txt')
  })

  it('end with the reason of the signal', async () => {
    const signal = AbortSignal.abort()
    await expect(landfall.get('/api/v2/uploads/files', { signal })).rejects.toMatchObject({ name: 'AbortError' })
    const late = AbortSignal.timeout(1)
    await new Promise((resolve) => late.addEventListener('abort', resolve))
    await expect(landfall.get('/api/v2/uploads/files', { signal: late })).rejects.toMatchObject({ name: 'TimeoutError' })
  })
})

describe('refusals of the server', () => {
  it('are of the class that says what is wrong', async () => {
    const missing = await failure(landfall.get('/api/v2/uploads/files/{fileId}', { params: { fileId: NOBODY } }))
    expect(missing).toBeInstanceOf(NotFoundError)
    expect(missing).toMatchObject({ name: 'NotFoundError', status: 404, code: 'FILE_NOT_FOUND', retryable: false })
    expect(missing.requestId).toBeTruthy()
    expect(missing.message).toMatch(/file/)

    const stranger = new Landfall({ baseUrl: server.url, token: 'wrong' })
    expect(await failure(stranger.get('/api/v2/uploads/files'))).toBeInstanceOf(UnauthenticatedError)
    expect(await failure(landfall.get('/api/v2/admin/config'))).toBeInstanceOf(ForbiddenError)
    expect(await failure(landfall.post('/api/v2/uploads/files/init', register('')))).toBeInstanceOf(InvalidRequestError)

    const { fileId } = await landfall.post('/api/v2/uploads/files/init', register('never.txt'))
    const early = await failure(landfall.post('/api/v2/uploads/files/{fileId}/confirm', { params: { fileId } }))
    expect(early).toBeInstanceOf(ConflictError)
    expect(early.code).toBe('UPLOAD_MISSING')
  })

  it('say when a quota is full', async () => {
    const operator = new Landfall({ baseUrl: server.url, token: server.token({ user: 'op', role: 'operator' }) })
    const small = new Landfall({ baseUrl: server.url, token: server.token({ user: 'small', tenant: 'small' }) })
    await operator.put('/api/v2/admin/tenants/{tenantId}/quota', { params: { tenantId: 'small' }, body: { bytes: 100 } })
    const full = await failure(small.upload(text(1000), { name: 'a.txt' }).uploaded())
    expect(full).toBeInstanceOf(QuotaExceededError)
    expect(full.code).toBe('QUOTA_EXCEEDED')
    const large = await failure(small.upload(text(5_000_000), { name: 'large.txt' }).uploaded())
    expect(large).toBeInstanceOf(QuotaExceededError)
  })

  it('say when there are too many streams', async () => {
    const stop = new AbortController()
    const as = (user: string) => new Landfall({ baseUrl: server.url, token: server.token({ user }), maxRetries: 0 })
    const open = { as: 'response', headers: { Accept: 'text/event-stream' }, signal: stop.signal } as const
    // A user has one, and the process has two.
    await as('first').get('/api/v2/uploads/events', open)
    const again = await failure(as('first').get('/api/v2/uploads/events', open))
    expect(again).toBeInstanceOf(RateLimitedError)
    expect(again.code).toBe('TOO_MANY_EVENT_STREAMS')
    await as('second').get('/api/v2/uploads/events', open)
    const busy = await failure(as('third').get('/api/v2/uploads/events', open))
    expect(busy).toBeInstanceOf(UnavailableError)
    expect(busy.retryable).toBe(true)
    stop.abort()
  })

  it('are a network error if there is no server', async () => {
    const nowhere = new Landfall({ baseUrl: 'http://127.0.0.1:9', maxRetries: 1 })
    const error = await failure(nowhere.get('/api/v2/uploads/files'))
    expect(error).toBeInstanceOf(NetworkError)
    expect(error.cause).toBeDefined()
  })

  it('are errors whatever a proxy in between says', async () => {
    const odd = new Landfall({ fetch: async () => new Response('<html>', { status: 502 }), baseUrl: 'http://x' })
    expect(await failure(odd.get('/api/v2/uploads/files'))).toMatchObject({ status: 502, code: 'HTTP_502', retryable: true })
    const blank = new Landfall({ fetch: async () => Response.json({ error: null }, { status: 404 }), baseUrl: 'http://x' })
    expect(await failure(blank.get('/api/v2/uploads/files'))).toBeInstanceOf(NotFoundError)
  })
})

describe('repetition', () => {
  /** A `fetch` that answers from a list first, and from the server afterwards. */
  function after(...answers: (() => Response | Promise<Response>)[]) {
    const sent: string[] = []
    const fetch: typeof globalThis.fetch = async (input, init) => {
      sent.push(`${init?.method} ${new URL(String(input)).pathname}`)
      return answers.shift()?.() ?? globalThis.fetch(input, init)
    }
    return { sent, client: new Landfall({ baseUrl: server.url, token: server.token(), fetch }) }
  }
  const status = (code: number) => () => Response.json({ error: { code: 'X', message: 'x', retryable: true, details: {} } }, { status: code, headers: { 'Retry-After': '0' } })
  const broken = () => Promise.reject<Response>(new TypeError('fetch failed'))

  it('is for requests that change nothing', async () => {
    const { client, sent } = after(broken, status(429), status(503))
    await client.get('/api/v2/uploads/quota')
    expect(sent).toHaveLength(4)
  })

  it('is for requests with a key, which run once', async () => {
    const { client, sent } = after(status(503))
    const options = { ...register('once.txt'), idempotencyKey: 'the-same' }
    const first = await client.post('/api/v2/uploads/files/init', options)
    const second = await client.post('/api/v2/uploads/files/init', options)
    expect(sent).toHaveLength(3)
    expect(second.fileId).toBe(first.fileId)
  })

  it('is not for other requests', async () => {
    const { client, sent } = after(status(503))
    expect(await failure(client.post('/api/v2/uploads/files/init', register('a.txt')))).toBeInstanceOf(UnavailableError)
    expect(sent).toHaveLength(1)
  })

  it('is bounded, in number and in time', async () => {
    const { client, sent } = after(...Array.from({ length: 9 }, () => status(503)))
    await failure(client.get('/api/v2/uploads/quota'))
    expect(sent).toHaveLength(5)
    const patient = after(() => Response.json({}, { status: 429, headers: { 'Retry-After': '3600' } }))
    expect(await failure(patient.client.get('/api/v2/uploads/quota'))).toMatchObject({ retryAfterMs: 3_600_000 })
    expect(patient.sent).toHaveLength(1)
  })

  it('is for answers that break off', async () => {
    const half = () => new Response(new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('{"fil'))
        controller.error(new TypeError('terminated'))
      },
    }))
    const { client, sent } = after(half)
    expect(await client.get('/api/v2/uploads/files')).toHaveProperty('files')
    expect(sent).toHaveLength(2)
  })

  it('gives a server that does not answer up', async () => {
    const fetch: typeof globalThis.fetch = (_, init) =>
      new Promise((_, reject) => init?.signal?.addEventListener('abort', () => reject(init.signal?.reason)))
    const client = new Landfall({ baseUrl: server.url, fetch, timeoutMs: 20, maxRetries: 1 })
    expect(await failure(client.get('/api/v2/uploads/files'))).toMatchObject({ name: 'NetworkError', code: 'TIMEOUT' })
  })
})

describe('tokens', () => {
  it('are asked for again when one has expired', async () => {
    const tokens = ['expired', server.token()]
    let asked = 0
    const client = new Landfall({ baseUrl: server.url, token: async () => tokens[Math.min(asked++, 1)]! })
    await client.post('/api/v2/uploads/files/init', register('renewed.txt'))
    expect(asked).toBe(2)
  })

  it('are not tried twice if they stay the same', async () => {
    let asked = 0
    const client = new Landfall({ baseUrl: server.url, token: () => `wrong ${(asked++, '')}` })
    expect(await failure(client.get('/api/v2/uploads/files'))).toBeInstanceOf(UnauthenticatedError)
    expect(asked).toBe(2)
  })

  it('of sessions go with requests that change something', async () => {
    const seen: (string | null)[] = []
    const fetch: typeof globalThis.fetch = async (_, init) => {
      seen.push(new Headers(init?.headers).get('X-CSRF-Token'))
      return Response.json({ fileId: 'x' })
    }
    const client = new Landfall({ baseUrl: server.url, fetch, csrfToken: () => 'secret' })
    await client.get('/api/v2/uploads/files')
    await client.post('/api/v2/uploads/files/init', register('a.txt'))
    expect(seen).toEqual([null, 'secret'])
  })
})
