import { Emitter, type Slots } from './emitter.js'
import { LandfallError, NetworkError, NotFoundError, UnauthenticatedError } from './errors.js'
import { backOff, randomId, sleep, type Transport } from './http.js'
import type { Remembered } from './remembered.js'
import type { BatchView, FileView, Priority } from './routes.js'
import { openSource, type Source, type UploadInput } from './sources.js'
import { endpoint, fileIdOf, TUS, UploadGone } from './tus-route.js'
import { sendWhole } from './upload-whole.js'

export interface UploadOptions {
  /** The name of the file. Needed for bytes that have none. */
  name?: string | undefined
  contentType?: string | undefined
  batchId?: string | undefined
  attributes?: Record<string, string | number | boolean> | undefined
  mapping?: Record<string, unknown> | unknown[] | undefined
  /** A priority belongs to a batch: without `batchId` the file gets a batch of its own. */
  priority?: Priority | undefined
  onProgress?: ((progress: UploadProgress) => void) | undefined
  /** Stops the upload. What the server has of it stays, and expires. */
  signal?: AbortSignal | undefined
  /** Whether to go on with an upload of the same file that did not end. True by default. */
  resume?: boolean | undefined
}

/** `waiting`: for a connection that was lost. `uploaded`: all bytes are there and confirmed. */
export type UploadState = 'queued' | 'sending' | 'waiting' | 'paused' | 'uploaded' | 'failed' | 'aborted'

export interface UploadProgress {
  sent: number
  total: number
  /** Bytes in a second, and the seconds that are left at this speed; undefined while that is not known. */
  speed: number | undefined
  timeLeft: number | undefined
  state: UploadState
}

export interface UploadContext {
  transport: Transport
  slots: Slots
  remembered: Remembered
  waitForFile: (fileId: string, options?: { signal?: AbortSignal }) => Promise<FileView>
}

/** Files above this size are sent in pieces, and go on where they were. */
const WHOLE_UP_TO = 4 * 1024 * 1024
/** How long an upload that makes no progress is tried again. */
const PATIENCE_MS = 5 * 60_000
/** Refusals that a new attempt resolves: it asks the server first how far it is. */
const PASSING = new Set(['OFFSET_MISMATCH', 'UPLOAD_LOCKED', 'UPLOAD_IN_PROGRESS', 'UPLOAD_CHANGED', 'UPLOAD_BROKEN', 'UPLOAD_MISSING', 'BODY_BROKEN'])

/** What arrived is not what was declared. */
const OTHER_BYTES = new Set(['SIZE_MISMATCH', 'CHECKSUM_MISMATCH'])

/** A file on its way to the server. */
export class Upload extends Emitter<{ progress: UploadProgress; state: UploadState }> {
  readonly #context: UploadContext
  readonly #options: UploadOptions
  readonly #stop = new AbortController()
  readonly #done: Promise<FileView>
  #attempt = new AbortController()
  #isPaused = false
  #onResume: () => void = () => {}
  #progress: UploadProgress
  #sample = { at: 0, sent: 0 }
  #movedAt = Date.now()
  #batchId: string | undefined
  #fileId: string | undefined
  #uploadUrl: string | undefined
  #storageKey: string | undefined
  #wasRemembered = false
  #isSent = false
  #refusals = 0
  #idempotencyKey = randomId()

  constructor(context: UploadContext, input: UploadInput, options: UploadOptions) {
    super()
    this.#context = context
    this.#options = options
    this.#batchId = options.batchId
    const known = input as { size?: number; byteLength?: number } | null | undefined
    const total = known?.size ?? known?.byteLength ?? 0
    this.#progress = { sent: 0, total, speed: undefined, timeLeft: undefined, state: 'queued' }
    if (options.onProgress) this.on('progress', options.onProgress)
    this.#done = this.#run(input)
    // Who only looks at `state` does not have to catch anything.
    this.#done.catch(() => {})
  }

  /** The id of the file, as soon as the server knows it. */
  get fileId(): string | undefined {
    return this.#fileId
  }

  get batchId(): string | undefined {
    return this.#batchId
  }

  /** A new object with each change. */
  get progress(): UploadProgress {
    return this.#progress
  }

  /** Resolves when all bytes are there and confirmed. */
  uploaded(): Promise<FileView> {
    return this.#done
  }

  /** Resolves when the file is ready. Throws a FileFailedError if it cannot be processed. */
  async wait(options: { signal?: AbortSignal } = {}): Promise<FileView> {
    const { signal } = options
    let stop: (() => void) | undefined
    const aborted = new Promise<never>((_, reject) => {
      stop = () => reject(signal?.reason)
      if (signal?.aborted) stop()
      else signal?.addEventListener('abort', stop, { once: true })
    })
    try {
      const file = await Promise.race([this.#done, aborted])
      return await this.#context.waitForFile(file.fileId, { signal })
    } finally {
      if (stop) signal?.removeEventListener('abort', stop)
    }
  }

  pause(): void {
    if (this.#isPaused || this.#isOver) return
    this.#isPaused = true
    this.#attempt.abort()
    this.#set('paused')
  }

  resume(): void {
    if (!this.#isPaused || this.#isOver) return
    this.#isPaused = false
    this.#movedAt = Date.now()
    this.#set('queued')
    this.#onResume()
  }

  /** Stops the upload and deletes what the server has of it. Does nothing once the file is uploaded. */
  async abort(): Promise<void> {
    if (this.#isOver) return
    this.#stop.abort(new DOMException('The upload was aborted', 'AbortError'))
    await this.#done.catch(() => {})
    if (this.#progress.state !== 'uploaded') await this.#delete()
  }

  /** Deletes what the server has of it. */
  async #delete(): Promise<void> {
    const fileId = this.#fileId
    if (fileId === undefined) return
    const { transport } = this.#context
    const call = this.#uploadUrl
      ? { path: `${TUS}/{uploadId}`, params: { uploadId: fileId }, headers: { 'Tus-Resumable': '1.0.0' } }
      : { path: '/api/v2/uploads/files/{fileId}', params: { fileId } }
    await transport.send({ method: 'delete', ...call }, (response) => response.text()).catch((error: unknown) => {
      if (!(error instanceof NotFoundError)) throw error
    })
    await this.#forget()
  }

  get #isOver(): boolean {
    return ['uploaded', 'failed', 'aborted'].includes(this.#progress.state)
  }

  async #run(input: UploadInput): Promise<FileView> {
    const { signal } = this.#options
    const stop = () => this.#stop.abort(signal?.reason)
    let source: Source | undefined
    try {
      signal?.addEventListener('abort', stop, { once: true })
      if (signal?.aborted) stop()
      this.#stop.signal.throwIfAborted()
      source = await openSource(input, this.#context.transport.ownFetch !== undefined)
      this.#progress = { ...this.#progress, total: source.size }
      const file = await this.#untilSent(source)
      await this.#forget()
      this.#set('uploaded', { sent: source.size, speed: undefined, timeLeft: 0 })
      return file
    } catch (error) {
      // An object store takes no other bytes for this file, and it would be charged to its owner until it expires.
      if (error instanceof LandfallError && OTHER_BYTES.has(error.code)) await this.#delete().catch(() => {})
      this.#set(this.#stop.signal.aborted ? 'aborted' : 'failed')
      throw error
    } finally {
      signal?.removeEventListener('abort', stop)
      if (this.#uploadUrl) this.#context.remembered.release(this.#uploadUrl)
      source?.close()
    }
  }

  /** Repeats attempts until one succeeds, or until it is clear that none will. */
  async #untilSent(source: Source): Promise<FileView> {
    for (let failures = 0; ; ) {
      while (this.#isPaused && !this.#stop.signal.aborted) {
        await new Promise<void>((resolve) => {
          this.#onResume = resolve
          this.#stop.signal.addEventListener('abort', () => resolve(), { once: true })
        })
      }
      this.#attempt = new AbortController()
      const signal = AbortSignal.any([this.#stop.signal, this.#attempt.signal])
      const before = this.#movedAt
      try {
        const release = await this.#context.slots.take(signal)
        try {
          this.#set('sending')
          return await this.#send(source, signal)
        } finally {
          release()
        }
      } catch (error) {
        this.#stop.signal.throwIfAborted()
        if (this.#isPaused || this.#attempt.signal.aborted) continue
        if (this.#movedAt > before) failures = 0
        await this.#beforeNext(error, failures++, signal)
      }
    }
  }

  /** Waits as long as makes sense after a failure. Throws it if another attempt would fail in the same way. */
  async #beforeNext(error: unknown, failures: number, signal: AbortSignal): Promise<void> {
    if (error instanceof UploadGone) {
      await this.#forget()
      this.#fileId = this.#uploadUrl = undefined
      this.#idempotencyKey = randomId()
      return
    }
    if (!(error instanceof LandfallError) || Date.now() - this.#movedAt > PATIENCE_MS) throw error
    const isPassing = error instanceof NetworkError || error.retryable || error.status >= 502 || PASSING.has(error.code)
    // A token that the server refuses twice in a row is not renewed by asking once more.
    const mayRenew = error instanceof UnauthenticatedError && this.#context.transport.canRenewToken && this.#refusals++ === 0
    if (!isPassing && !mayRenew) throw error
    this.#set('waiting', { speed: undefined, timeLeft: undefined })
    const wait = mayRenew ? 0 : (error.retryAfterMs ?? backOff(failures))
    await sleep(Math.min(wait, PATIENCE_MS), signal).catch(() => this.#stop.signal.throwIfAborted())
  }

  async #send(source: Source, signal: AbortSignal): Promise<FileView> {
    const { transport } = this.#context
    const name = this.#options.name ?? source.name
    if (!name) throw new TypeError('The upload has no name: give it one with the option `name`')
    if (!this.#isSent) {
      await this.#openBatch(signal)
      if (source.size > WHOLE_UP_TO) await this.#sendPiecewise(source, name, signal)
      else await this.#sendWhole(source, name, signal)
      this.#isSent = true
    }
    return transport.json<FileView>({
      method: 'get',
      path: '/api/v2/uploads/files/{fileId}',
      params: { fileId: this.#fileId },
      signal,
    })
  }

  async #openBatch(signal: AbortSignal): Promise<void> {
    const { priority } = this.#options
    if (priority === undefined || this.#batchId !== undefined) return
    const idempotencyKey = `${this.#idempotencyKey}-batch`
    const body = { fileCount: 1, priority }
    const call = { method: 'post', path: '/api/v2/uploads/batches', body, idempotencyKey, signal }
    this.#batchId = (await this.#context.transport.json<Pick<BatchView, 'batchId'>>(call)).batchId
  }

  async #sendWhole(source: Source, name: string, signal: AbortSignal): Promise<void> {
    const { attributes, mapping } = this.#options
    const contentType = this.#options.contentType ?? source.type
    await sendWhole({
      transport: this.#context.transport,
      source,
      announcement: { fileName: name, fileSize: source.size, contentType, attributes, mapping },
      batchId: this.#batchId,
      idempotencyKey: this.#idempotencyKey,
      fileId: this.#fileId,
      onRegistered: (fileId) => this.#know(fileId),
      onSent: () => this.#moved(source.size),
      signal,
    })
  }

  async #sendPiecewise(source: Source, name: string, signal: AbortSignal): Promise<void> {
    const { transport, remembered } = this.#context
    const { attributes, mapping } = this.#options
    const type = this.#options.contentType ?? source.type
    const metadata: Record<string, string> = { filename: name }
    if (type) metadata['filetype'] = type
    if (this.#batchId !== undefined) metadata['batch'] = this.#batchId
    if (attributes) metadata['attributes'] = JSON.stringify(attributes)
    if (mapping) metadata['mapping'] = JSON.stringify(mapping)

    // Only the same bytes for the same purpose go on: a file that was changed meanwhile begins again.
    const isNotable = source.identity !== undefined && this.#options.resume !== false
    const fingerprint = encodeURIComponent(JSON.stringify(['landfall', endpoint(transport), source.identity, metadata]))
    if (isNotable && this.#uploadUrl === undefined && !this.#wasRemembered) {
      const previous = await remembered.find(fingerprint)
      if (previous?.uploadUrl) {
        this.#wasRemembered = true
        this.#uploadUrl = previous.uploadUrl
        this.#storageKey = previous.urlStorageKey
        remembered.activate(previous.uploadUrl)
        this.#know(fileIdOf(previous.uploadUrl))
      }
    }
    let noting: Promise<unknown> | undefined
    // Most programs send small files; only those that need it load the rest.
    const { sendPiecewise } = await import('./upload-tus.js')
    await sendPiecewise({
      transport,
      source,
      metadata,
      idempotencyKey: this.#idempotencyKey,
      uploadUrl: this.#uploadUrl,
      mayBeginAgain: this.#wasRemembered && this.#progress.sent === 0,
      onUrl: (url, fileId) => {
        if (this.#uploadUrl === url) return
        this.#uploadUrl = url
        remembered.activate(url)
        this.#know(fileId)
        if (!isNotable) return
        noting = remembered.add(fingerprint, url, source.size, metadata).then((key) => (this.#storageKey = key))
      },
      onProgress: (sent) => this.#moved(sent),
      signal,
    }).finally(() => noting)
  }

  async #forget(): Promise<void> {
    if (this.#uploadUrl) this.#context.remembered.release(this.#uploadUrl)
    if (this.#storageKey !== undefined) await this.#context.remembered.remove(this.#storageKey)
    this.#storageKey = undefined
  }

  #know(fileId: string): void {
    this.#fileId = fileId
    this.#movedAt = Date.now()
    this.#set(this.#progress.state)
  }

  #moved(sent: number): void {
    const now = Date.now()
    const { total } = this.#progress
    let { speed } = this.#progress
    if (sent > this.#progress.sent) {
      this.#movedAt = now
      this.#refusals = 0
    }
    const elapsed = now - this.#sample.at
    if (this.#sample.at === 0 || sent < this.#sample.sent) {
      this.#sample = { at: now, sent }
    } else if (elapsed >= 500) {
      const measured = ((sent - this.#sample.sent) * 1000) / elapsed
      speed = speed === undefined ? measured : speed * 0.7 + measured * 0.3
      this.#sample = { at: now, sent }
    }
    const timeLeft = speed ? (total - sent) / speed : undefined
    this.#set(this.#progress.state, { sent, speed, timeLeft })
  }

  #set(state: UploadState, changes: Partial<UploadProgress> = {}): void {
    const isNew = state !== this.#progress.state
    if (isNew) this.#sample = { at: 0, sent: 0 }
    this.#progress = { ...this.#progress, ...changes, state }
    if (isNew) this.emit('state', state)
    this.emit('progress', this.#progress)
  }
}
