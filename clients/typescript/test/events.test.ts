import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { ForbiddenError, Landfall, UnauthenticatedError, type EventsOptions, type StreamEvent } from '../src/index.js'
import { Proxy, TestServer, until } from './server.js'

let server: TestServer
let proxy: Proxy
let landfall: Landfall
/** Past the proxy, so that only the streams are cut. */
let direct: Landfall
const stops: AbortController[] = []

beforeAll(async () => {
  server = await TestServer.start()
  proxy = await Proxy.to(server.url)
  landfall = new Landfall({ baseUrl: proxy.url, token: server.token() })
  direct = new Landfall({ baseUrl: server.url, token: server.token() })
})
afterEach(() => {
  for (const stop of stops.splice(0)) stop.abort()
})
afterAll(async () => {
  await proxy.close()
  await server.stop()
})

/** Reads a stream into a list. Resolves when it is open. */
async function listen(client: Landfall, options: EventsOptions = {}) {
  const stop = new AbortController()
  stops.push(stop)
  const seen: StreamEvent[] = []
  const losses: unknown[] = []
  let opened = 0
  const over = (async () => {
    const onOpen = () => void opened++
    const onLost = (error: unknown) => void losses.push(error)
    for await (const event of client.events({ ...options, signal: stop.signal, onOpen, onLost })) seen.push(event)
  })()
  over.catch(() => {})
  await Promise.race([until(() => opened > 0, 'the stream'), over])
  return { seen, losses, over, stop, opened: () => opened }
}

const register = async (fileName: string) =>
  (await direct.post('/api/v2/uploads/files/init', { body: { fileName, fileSize: 1 } })).fileId
const fileIds = (events: StreamEvent[]) => events.flatMap((event) => (event.type === 'file:status-changed' ? [event.data.fileId] : []))

describe('a stream of events', () => {
  it('loses nothing and repeats nothing when connections are cut', async () => {
    const stream = await listen(landfall)
    const expected: string[] = []
    for (let round = 0; round < 4; round++) {
      for (let n = 0; n < 5; n++) {
        expected.push(await register(`${round}-${n}.txt`))
        if (n === 2) proxy.cutAll()
      }
    }
    await until(() => fileIds(stream.seen).length >= expected.length, 'all events')
    expect(fileIds(stream.seen)).toEqual(expected)
    expect(stream.losses.length).toBeGreaterThan(0)
    const ids = stream.seen.map((event) => event.id)
    expect(ids).toEqual([...ids].sort((a, b) => a - b))
  })

  it('loses nothing that happens before the first event, while it is not connected', async () => {
    const stream = await listen(landfall)
    proxy.cutAll()
    const expected = [await register('a.txt'), await register('b.txt')]
    await until(() => stream.seen.length >= 2, 'both events')
    expect(fileIds(stream.seen)).toEqual(expected)
  })

  it('goes on when the server was killed and started again', async () => {
    const stream = await listen(direct)
    const expected = [await register('before.txt')]
    await until(() => stream.seen.length === 1, 'the first event')
    await server.kill()
    await server.start()
    expected.push(await register('after.txt'))
    await until(() => stream.seen.length >= 2, 'the second event')
    expect(fileIds(stream.seen)).toEqual(expected)
  })

  it('begins after an event that is known, and ends if it shall not follow', async () => {
    const all: StreamEvent[] = []
    for await (const event of direct.events({ after: 0, follow: false })) all.push(event)
    expect(all.length).toBeGreaterThan(3)
    const rest: StreamEvent[] = []
    for await (const event of direct.events({ after: all[1]!.id, follow: false })) rest.push(event)
    expect(rest).toEqual(all.slice(2))
  })

  it('selects types and batches', async () => {
    const batch = await direct.batch({ fileCount: 1 })
    const stream = await listen(direct, { batchId: batch.batchId, types: ['batch:cancelled'] })
    await register('other.txt')
    await batch.cancel()
    await until(() => stream.seen.length > 0, 'the event')
    expect(stream.seen.map((event) => event.type)).toEqual(['batch:cancelled'])
  })

  it('says when events may be missing', async () => {
    const stream = await listen(direct, { after: '900000000000000' })
    await until(() => stream.seen.length > 0, 'the gap')
    expect(stream.seen[0]).toMatchObject({ type: 'stream:gap', data: { after: 900000000000000 } })
    // It goes on from there, although the ids are lower now.
    const fileId = await register('later.txt')
    await until(() => stream.seen.length > 1, 'the event')
    expect(fileIds(stream.seen)).toEqual([fileId])
  })

  it('asks for a new token when the old one has expired', async () => {
    const tokens = [server.token({ ttl: '2s' })]
    let asked = 0
    const client = new Landfall({
      baseUrl: server.url,
      token: () => {
        if (asked++ === 1) tokens.push(server.token())
        return tokens.at(-1)!
      },
    })
    const stream = await listen(client)
    expect(asked).toBe(1)
    await until(() => stream.opened() > 1, 'the second connection')
    expect(stream.losses).toMatchObject([{ code: 'TOKEN_EXPIRED' }])
    const fileId = await register('renewed.txt')
    await until(() => stream.seen.length > 0, 'the event')
    expect(fileIds(stream.seen)).toEqual([fileId])
  })

  it('ends if no new token comes', async () => {
    const client = new Landfall({ baseUrl: server.url, token: server.token({ ttl: '2s' }) })
    const stream = await listen(client)
    await expect(stream.over).rejects.toBeInstanceOf(UnauthenticatedError)
  })

  it('ends if it is not allowed', async () => {
    await expect(listen(direct, { scope: 'all' })).rejects.toBeInstanceOf(ForbiddenError)
  })

  it('closes its connection when the loop is left, and when the signal says so', async () => {
    proxy.cutAll()
    await until(() => proxy.open === 0, 'the end of other connections')
    const stream = await listen(landfall)
    expect(proxy.open).toBe(1)
    stream.stop.abort()
    await expect(stream.over).rejects.toMatchObject({ name: 'AbortError' })
    await until(() => proxy.open === 0, 'the end of the connection')
    const pending = (async () => {
      for await (const event of landfall.events({ after: 0 })) return event
      return undefined
    })()
    expect(await pending).toBeDefined()
    await until(() => proxy.open === 0, 'the end of the connection')
  })

  it('is shared by all who wait', async () => {
    proxy.cutAll()
    await until(() => proxy.open === 0, 'the end of other connections')
    let streams = 0
    const counting = new Landfall({
      baseUrl: server.url,
      token: server.token(),
      fetch: (input, init) => {
        if (String(input).includes('/uploads/events')) streams++
        return fetch(input, init)
      },
    })
    const uploads = [1, 2, 3, 4, 5].map((n) => counting.upload(new Blob([`text number ${n}`]), { name: `${n}.txt` }))
    const files = await Promise.all(uploads.map((upload) => upload.wait()))
    expect(files.map((file) => file.status)).toEqual(Array(5).fill('ready'))
    expect(streams).toBe(1)
  })
})

describe('waiting for a file', () => {
  it('survives cut connections and a killed server', async () => {
    const upload = landfall.upload(new Blob(['a text to wait for']), { name: 'wait.txt' })
    const { fileId } = await upload.uploaded()
    const waiting = landfall.waitForFile(fileId)
    proxy.cutAll()
    await server.kill()
    await server.start()
    expect(await waiting).toMatchObject({ fileId, status: 'ready' })
    // One that is ready already needs no event.
    expect(await direct.waitForFile(fileId)).toMatchObject({ status: 'ready' })
  })

  it('ends with the signal', async () => {
    const fileId = await register('never.txt')
    const stop = new AbortController()
    const waiting = direct.waitForFile(fileId, { signal: stop.signal })
    stop.abort()
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' })
  })

  it('ends if the file is cancelled', async () => {
    const upload = direct.upload(new Blob(['x '.repeat(1_500_000)]), { name: 'cancelled.txt' })
    const { fileId } = await upload.uploaded()
    const over = expect(direct.waitForFile(fileId)).rejects.toMatchObject({ name: 'FileFailedError', code: 'CANCELLED', file: { fileId } })
    await direct.post('/api/v2/uploads/files/{fileId}/cancel', { params: { fileId } })
    await over
  })
})
