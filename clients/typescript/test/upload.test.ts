import { createHash, randomBytes } from 'node:crypto'
import { createReadStream, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { FileFailedError, fileUrlStorage, ForbiddenError, Landfall, NotFoundError, UnauthenticatedError, type Upload, type UploadProgress } from '../src/index.js'
import { Proxy, TestServer, until } from './server.js'

let server: TestServer
let proxy: Proxy
let landfall: Landfall
let direct: Landfall

beforeAll(async () => {
  server = await TestServer.start()
  proxy = await Proxy.to(server.url)
  landfall = new Landfall({ baseUrl: proxy.url, token: server.token() })
  direct = new Landfall({ baseUrl: server.url, token: server.token() })
})
afterAll(async () => {
  await proxy.close()
  await server.stop()
})

const MB = 1024 * 1024
const NOISE = randomBytes(MB)
/** Bytes of no known type, which no stage reads for long. */
function bytes(size: number): Uint8Array<ArrayBuffer> {
  const data = new Uint8Array(size)
  for (let at = 0; at < size; at += MB) data.set(NOISE.subarray(0, Math.min(MB, size - at)), at)
  return data
}
const sha256 = (data: Uint8Array) => createHash('sha256').update(data).digest('hex')
const NAME = 'data.unknown'

/** The file has these bytes, and there is no second one of this name. */
async function arrived(upload: Upload, data: Uint8Array, name: string) {
  const file = await upload.uploaded()
  expect(file).toMatchObject({ fileId: upload.fileId, fileName: name, size: data.length })
  const blob = await direct.get('/api/v2/uploads/files/{fileId}/download', { params: { fileId: file.fileId }, as: 'blob' })
  expect(sha256(new Uint8Array(await blob.arrayBuffer()))).toBe(sha256(data))
  const { files } = await direct.get('/api/v2/uploads/files', { query: { q: name } })
  expect(files.map((file) => file.fileId)).toEqual([upload.fileId])
  expect(upload.progress).toMatchObject({ sent: data.length, total: data.length, state: 'uploaded' })
}

/** Resolves when the upload has sent so much. */
const sent = (upload: Upload, count: number) =>
  new Promise<void>((resolve) => {
    const off = upload.on('progress', (progress) => {
      if (progress.sent < count) return
      off()
      resolve()
    })
  })

describe('what can be uploaded', () => {
  it('bytes, blobs and files', async () => {
    const data = bytes(1000)
    await arrived(direct.upload(data, { name: 'bytes.unknown' }), data, 'bytes.unknown')
    await arrived(direct.upload(data.buffer, { name: 'buffer.unknown' }), data, 'buffer.unknown')
    await arrived(direct.upload(new Blob([data]), { name: 'blob.unknown' }), data, 'blob.unknown')
    await arrived(direct.upload(new File([data], 'file.unknown')), data, 'file.unknown')
  })

  it('paths and streams', async () => {
    const data = bytes(5 * MB)
    const path = join(server.folder, 'path.unknown')
    writeFileSync(path, data)
    await arrived(direct.upload({ path }), data, 'path.unknown')
    await arrived(direct.upload({ path }, { name: 'renamed.unknown' }), data, 'renamed.unknown')
    const stream = { stream: createReadStream(path), name: 'stream.unknown', size: data.length }
    await arrived(direct.upload(stream), data, 'stream.unknown')
    const small = { stream: new Blob(['small stream']).stream(), name: 'small.unknown', size: 12 }
    await arrived(direct.upload(small as never), new TextEncoder().encode('small stream'), 'small.unknown')
  })

  it('large blobs, with attributes and the content type', async () => {
    const data = bytes(9 * MB)
    const seen: UploadProgress[] = []
    const file = new File([data], 'large.unknown', { type: 'application/x-unknown' })
    const upload = direct.upload(file, { attributes: { year: 2026, draft: false }, onProgress: (progress) => seen.push(progress) })
    await arrived(upload, data, 'large.unknown')
    expect(await upload.uploaded()).toMatchObject({ contentType: 'application/x-unknown', attributes: { year: 2026, draft: false } })
    expect(seen.every((progress, n) => n === 0 || progress.sent >= seen[n - 1]!.sent)).toBe(true)
    expect(seen.some((progress) => progress.sent > 0 && progress.sent < data.length)).toBe(true)
  })

  it('through a fetch of the caller', async () => {
    const methods = new Set<string>()
    const own = new Landfall({
      baseUrl: server.url,
      token: server.token(),
      fetch: (input, init) => {
        methods.add(init?.method ?? 'GET')
        return fetch(input, init)
      },
    })
    const data = bytes(9 * MB)
    await arrived(own.upload(data, { name: 'fetched.unknown' }), data, 'fetched.unknown')
    expect(methods).toContain('PATCH')
  })

  it('nothing without a name, and nothing else', async () => {
    await expect(direct.upload(bytes(3)).uploaded()).rejects.toThrow(/name/)
    await expect(direct.upload('text' as never).uploaded()).rejects.toThrow(TypeError)
    await expect(direct.upload({ path: '/nothing/there' }).uploaded()).rejects.toMatchObject({ code: 'ENOENT' })
  })
})

describe('an upload over a bad connection', () => {
  it('goes on where it was when the connection is cut', async () => {
    const data = bytes(24 * MB)
    const before = proxy.received
    // In the third request: those before it were answered.
    proxy.cutAfter(20 * MB)
    const upload = landfall.upload(data, { name: 'cut.unknown' })
    const states: string[] = []
    upload.on('state', (state) => states.push(state))
    await arrived(upload, data, 'cut.unknown')
    expect(states).toEqual(['sending', 'waiting', 'sending', 'uploaded'])
    // What had arrived was not sent again.
    expect(proxy.received - before).toBeLessThan(data.length + 6 * MB)
  })

  it('sends a small file again', async () => {
    const data = bytes(MB)
    proxy.cutAfter(MB / 2)
    const upload = landfall.upload(data, { name: 'small-cut.unknown' })
    await arrived(upload, data, 'small-cut.unknown')
  })

  it('goes on when the server was killed and started again', async () => {
    const data = bytes(40 * MB)
    const path = join(server.folder, 'killed.unknown')
    writeFileSync(path, data)
    const upload = landfall.upload({ path })
    await sent(upload, 2 * MB)
    await server.kill()
    await server.start()
    await arrived(upload, data, 'killed.unknown')
  })

  it('reads a stream once, however often it is sent', async () => {
    const data = bytes(20 * MB)
    const path = join(server.folder, 'once.unknown')
    writeFileSync(path, data)
    proxy.cutAfter(10 * MB)
    const upload = landfall.upload({ stream: createReadStream(path), name: 'once.unknown', size: data.length })
    await arrived(upload, data, 'once.unknown')
  })

  it('fails with the reason if that does not help', async () => {
    const lost = new Landfall({ baseUrl: server.url, token: 'wrong' })
    const upload = lost.upload(bytes(5 * MB), { name: NAME })
    await expect(upload.uploaded()).rejects.toBeInstanceOf(UnauthenticatedError)
    await expect(upload.wait()).rejects.toBeInstanceOf(UnauthenticatedError)
    expect(upload.progress.state).toBe('failed')
    const batchId = '00000000-0000-7000-8000-000000000000'
    await expect(direct.upload(bytes(5 * MB), { name: NAME, batchId }).uploaded()).rejects.toBeInstanceOf(NotFoundError)
    const reading = await direct.post('/api/v2/keys', { body: { name: 'reading', scopes: ['read'] } })
    const reader = new Landfall({ baseUrl: server.url, token: reading.key })
    await expect(reader.upload(bytes(3), { name: NAME }).uploaded()).rejects.toBeInstanceOf(ForbiddenError)
  })

  it('goes on with a new token', async () => {
    const good = server.token()
    let isExpired = false
    let asked = 0
    const client = new Landfall({
      baseUrl: proxy.url,
      token: () => {
        asked++
        if (!isExpired) return good
        isExpired = false
        return 'expired'
      },
    })
    const data = bytes(20 * MB)
    const upload = client.upload(data, { name: 'renewed.unknown' })
    await sent(upload, MB)
    isExpired = true
    await arrived(upload, data, 'renewed.unknown')
    expect(asked).toBeGreaterThan(3)
  })
})

describe('an upload', () => {
  it('can be paused and resumed', async () => {
    for (const size of [MB, 24 * MB]) {
      const data = bytes(size)
      const name = `paused-${size}.unknown`
      const upload = landfall.upload(data, { name })
      if (size > MB) await sent(upload, 2 * MB)
      upload.pause()
      upload.pause()
      expect(upload.progress.state).toBe('paused')
      upload.resume()
      upload.resume()
      await arrived(upload, data, name)
    }
  })

  it('does not end while it is paused', async () => {
    const upload = direct.upload(bytes(100), { name: 'held.unknown' })
    upload.pause()
    const after = direct.upload(bytes(100), { name: 'other.unknown' })
    await after.uploaded()
    expect(upload.progress.state).toBe('paused')
    await upload.abort()
    expect(upload.progress.state).toBe('aborted')
  })

  it('can be aborted, and leaves nothing behind', async () => {
    const upload = direct.upload(bytes(30 * MB), { name: 'aborted.unknown' })
    const over = expect(upload.uploaded()).rejects.toMatchObject({ name: 'AbortError' })
    await sent(upload, 2 * MB)
    await upload.abort()
    await over
    const { files } = await direct.get('/api/v2/uploads/files', { query: { q: 'aborted.unknown' } })
    expect(files.filter((file) => file.status !== 'deleted')).toEqual([])
    await upload.abort()
  })

  it('leaves nothing behind if other bytes arrived than it declared', async () => {
    const declaringMore: typeof fetch = (input, init) =>
      fetch(input, String(input).endsWith('/confirm') ? { ...init, body: JSON.stringify({ size: 101 }) } : init)
    const client = new Landfall({ baseUrl: server.url, token: server.token(), fetch: declaringMore })
    const upload = client.upload(bytes(100), { name: 'mistaken.unknown' })
    await expect(upload.uploaded()).rejects.toMatchObject({ code: 'SIZE_MISMATCH' })
    expect(upload.progress.state).toBe('failed')
    expect(upload.fileId).toBeDefined()
    const { files } = await direct.get('/api/v2/uploads/files', { query: { q: 'mistaken.unknown' } })
    expect(files.filter((file) => file.status !== 'deleted')).toEqual([])
  })

  it.each([
    [412, 'PreconditionFailed', 'At least one of the pre-conditions you specified did not hold'],
    [409, 'BlobAlreadyExists', 'The specified blob already exists.'],
  ])('is confirmed if the object store has the bytes of an earlier attempt (%i %s)', async (status, code, message) => {
    const data = bytes(100)
    let sent = 0
    // The first answer comes before the bytes do, and the second after them.
    const repeated: typeof fetch = async (input, init) => {
      if (init?.method !== 'PUT') return fetch(input, init)
      if (++sent > 1) await fetch(input, init)
      return new Response(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`, { status })
    }
    const client = new Landfall({ baseUrl: server.url, token: server.token(), fetch: repeated })
    await arrived(client.upload(data, { name: `there-${status}.unknown` }), data, `there-${status}.unknown`)
    expect(sent).toBe(2)
  })

  it('tells what an object store says', async () => {
    const refusing: typeof fetch = (input, init) =>
      init?.method === 'PUT'
        ? Promise.resolve(new Response('<Error><Code>BadDigest</Code><Message>The Content-MD5 did not match</Message></Error>', { status: 400 }))
        : fetch(input, init)
    const client = new Landfall({ baseUrl: server.url, token: server.token(), fetch: refusing })
    const upload = client.upload(bytes(100), { name: 'refused.unknown' })
    await expect(upload.uploaded()).rejects.toMatchObject({ status: 400, code: 'BadDigest', message: 'The Content-MD5 did not match' })
  })

  it('goes on if a listener throws', async () => {
    const said = vi.spyOn(console, 'error').mockImplementation(() => {})
    const upload = direct.upload(new Blob(['Text.']), { name: 'listened.txt' })
    upload.on('state', () => {
      throw new Error('of the listener')
    })
    const off = direct.sharedEvents().subscribe({
      onEvent: () => {
        throw new Error('of the listener')
      },
    })
    expect(await upload.wait()).toMatchObject({ status: 'ready' })
    off()
    expect(said).toHaveBeenCalled()
    said.mockRestore()
  })

  it('stops with its signal', async () => {
    const stop = new AbortController()
    const upload = direct.upload(bytes(30 * MB), { name: NAME, signal: stop.signal })
    await sent(upload, MB)
    stop.abort()
    await expect(upload.uploaded()).rejects.toMatchObject({ name: 'AbortError' })
    const never = direct.upload(bytes(3), { name: NAME, signal: AbortSignal.abort() })
    await expect(never.uploaded()).rejects.toMatchObject({ name: 'AbortError' })
    expect(never.fileId).toBeUndefined()
  })

  it('waits for its turn', async () => {
    let sending = 0
    let most = 0
    const counting: typeof fetch = async (input, init) => {
      if (init?.method !== 'PUT') return fetch(input, init)
      most = Math.max(most, ++sending)
      return fetch(input, init).finally(() => sending--)
    }
    const two = new Landfall({ baseUrl: server.url, token: server.token(), concurrentUploads: 2, fetch: counting })
    const uploads = [1, 2, 3, 4, 5].map((n) => two.upload(bytes(100), { name: `turn-${n}.unknown` }))
    await uploads[4]!.abort()
    await Promise.all(uploads.slice(0, 4).map((upload) => upload.uploaded()))
    expect(most).toBe(2)
  })

  it('goes on in the next run of the program', async () => {
    const path = join(server.folder, 'resumed.unknown')
    const data = bytes(30 * MB)
    writeFileSync(path, data)
    const urlStorage = fileUrlStorage(join(server.folder, 'uploads.json'))
    const options = { baseUrl: server.url, token: server.token(), urlStorage }
    const stop = new AbortController()
    const first = new Landfall(options).upload({ path }, { signal: stop.signal })
    await sent(first, 4 * MB)
    stop.abort()
    await first.uploaded().catch(() => {})

    const again = new Landfall(options)
    expect(await again.unfinishedUploads()).toMatchObject([{ name: 'resumed.unknown', size: data.length }])
    const second = again.upload({ path })
    await arrived(second, data, 'resumed.unknown')
    expect(second.fileId).toBe(first.fileId)
    expect(await again.unfinishedUploads()).toEqual([])
  })

  it('can be begun twice with the same file', async () => {
    const path = join(server.folder, 'twice.unknown')
    writeFileSync(path, bytes(30 * MB))
    const urlStorage = fileUrlStorage(join(server.folder, 'twice.json'))
    const client = new Landfall({ baseUrl: server.url, token: server.token(), urlStorage })
    const first = client.upload({ path })
    await sent(first, MB)
    const second = client.upload({ path })
    const files = await Promise.all([first.uploaded(), second.uploaded()])
    expect(files[0].fileId).not.toBe(files[1].fileId)
  })

  it('begins again if the server does not know the earlier one any more, or if the file was changed', async () => {
    const path = join(server.folder, 'stale.unknown')
    const data = bytes(30 * MB)
    writeFileSync(path, data)
    const urlStorage = fileUrlStorage(join(server.folder, 'stale.json'))
    const client = new Landfall({ baseUrl: server.url, token: server.token(), urlStorage })
    const begin = async () => {
      const stop = new AbortController()
      const upload = client.upload({ path }, { signal: stop.signal })
      await sent(upload, 2 * MB)
      stop.abort()
      await upload.uploaded().catch(() => {})
      return upload.fileId!
    }
    const fileId = await begin()
    await direct.delete('/api/v2/uploads/files/{fileId}', { params: { fileId } })
    const second = await begin()
    expect(second).not.toBe(fileId)
    writeFileSync(path, data.subarray(0, 20 * MB))
    const third = client.upload({ path })
    expect((await third.uploaded()).size).toBe(20 * MB)
    expect(third.fileId).not.toBe(second)
    const left = await client.unfinishedUploads()
    expect(left.map((upload) => upload.size)).toEqual([30 * MB])
    await left[0]!.forget()
    expect(await client.unfinishedUploads()).toEqual([])
  })
})

describe('processing', () => {
  it('ends with a file that is ready, or with the reason', async () => {
    const ready = await direct.upload(new Blob(['A short text.']), { name: 'short.txt' }).wait()
    expect(ready).toMatchObject({ status: 'ready', chunkCount: 1 })
    const upload = direct.upload(new Blob(['%PDF-1.7 and then nothing']), { name: 'broken.pdf', contentType: 'application/pdf' })
    const error = await upload.wait().catch((error: unknown) => error)
    expect(error).toBeInstanceOf(FileFailedError)
    expect(error).toMatchObject({ code: 'PARSE_ERROR', stage: 'extract', file: { fileId: upload.fileId, status: 'failed' } })
  })

  it('has a priority', async () => {
    const upload = direct.upload(new Blob(['Urgent.']), { name: 'urgent.txt', priority: 'high' })
    expect(await upload.wait()).toMatchObject({ priority: 'high', status: 'ready', batchId: upload.batchId })
  })

  it('of a batch ends when all files have ended', async () => {
    const batch = await direct.batch({ fileCount: 3, metadata: { project: 'x' } })
    const seen: number[] = []
    const off = batch.on('progress', (progress) => seen.push(progress.ready))
    for (const n of [1, 2]) batch.upload(new Blob([`Text of file ${n}.`]), { name: `batch-${n}.txt` })
    batch.upload(new Blob(['%PDF-1.7']), { name: 'batch.pdf', contentType: 'application/pdf' })
    const done = await batch.wait()
    expect(done).toMatchObject({ status: 'completed', summary: { total: 3, ready: 2, failed: 1 }, metadata: { project: 'x' } })
    await until(() => seen.at(-1) === 2, 'the last count')
    off()
  })

  it('of a batch says if an upload failed', async () => {
    const batch = await direct.batch({ fileCount: 2 })
    const first = batch.upload(new Blob(['Text.']), { name: 'in.txt' })
    batch.upload(new Blob(['Text.']), { name: '' })
    await expect(batch.wait()).rejects.toThrow(/name/)
    await first.uploaded()
    await batch.close()
    expect(await batch.wait()).toMatchObject({ status: 'completed', summary: { ready: 1 } })
  })
})
