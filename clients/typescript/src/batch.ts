import { Emitter } from './emitter.js'
import type { BatchCounts } from './event-types.js'
import type { EventHub } from './hub.js'
import type { Landfall } from './landfall.js'
import type { BatchView, Priority } from './routes.js'
import type { UploadInput } from './sources.js'
import type { Upload, UploadOptions } from './upload.js'
import { waitFor } from './wait.js'

export interface BatchOptions {
  fileCount: number
  metadata?: Record<string, unknown> | undefined
  priority?: Priority | undefined
  mapping?: Record<string, unknown> | unknown[] | undefined
}

/** Files that belong together. */
export class Batch extends Emitter<{ progress: BatchCounts }> {
  readonly #landfall: Landfall
  readonly #hub: () => EventHub
  #uploads: Upload[] = []
  #listening = 0
  #unsubscribe: (() => void) | undefined

  constructor(landfall: Landfall, hub: () => EventHub, readonly batchId: string) {
    super()
    this.#landfall = landfall
    this.#hub = hub
  }

  /** The uploads that were begun here. */
  get uploads(): readonly Upload[] {
    return this.#uploads
  }

  upload(file: UploadInput, options: Omit<UploadOptions, 'batchId' | 'priority'> = {}): Upload {
    const upload = this.#landfall.upload(file, { ...options, batchId: this.batchId })
    this.#uploads.push(upload)
    return upload
  }

  /** How many files are in each state, whenever that changes. Events are read as long as somebody listens. */
  override on(name: 'progress', listener: (progress: BatchCounts) => void): () => void {
    const off = super.on(name, listener)
    if (this.#listening++ === 0) {
      this.#unsubscribe = this.#hub().subscribe({
        onEvent: (event) => {
          const isOurs = event.type === 'batch:progress' || event.type === 'batch:completed' || event.type === 'batch:expired'
          if (isOurs && event.data.batchId === this.batchId) this.emit('progress', event.data)
        },
      })
    }
    let isOn = true
    return () => {
      if (!isOn) return
      isOn = false
      off()
      if (--this.#listening === 0) this.#unsubscribe?.()
    }
  }

  get(options: { signal?: AbortSignal } = {}): Promise<BatchView> {
    return this.#landfall.get('/api/v2/uploads/batches/{batchId}', { params: { batchId: this.batchId }, signal: options.signal })
  }

  /**
   * Resolves when every file has come to its end; `summary` says how many are ready. Throws if an upload of this object
   * failed, because the batch would wait for it until it expires: repeat the upload, or `close()` the batch.
   */
  async wait(options: { signal?: AbortSignal } = {}): Promise<BatchView> {
    const own = new AbortController()
    const signal = options.signal ? AbortSignal.any([options.signal, own.signal]) : own.signal
    const failed = Promise.all(this.#uploads.map((upload) => upload.uploaded())).then(() => new Promise<never>(() => {}))
    const over = waitFor({
      hub: this.#hub(),
      read: (signal) => this.get({ signal }),
      mayEnd: ({ type, data }) =>
        (type === 'batch:completed' || type === 'batch:expired' || type === 'batch:cancelled') && data.batchId === this.batchId,
      isOver: (batch) => batch.status !== 'active',
      signal,
    })
    try {
      return await Promise.race([over, failed])
    } finally {
      own.abort()
      over.catch(() => {})
      // They were reported; what takes their place counts from now on.
      this.#uploads = this.#uploads.filter(({ progress }) => progress.state !== 'failed' && progress.state !== 'aborted')
    }
  }

  /** No more files come: the batch is complete when those that came are done. */
  close(): Promise<unknown> {
    return this.#landfall.post('/api/v2/uploads/batches/{batchId}/close', { params: { batchId: this.batchId } })
  }

  cancel(): Promise<unknown> {
    return this.#landfall.post('/api/v2/uploads/batches/{batchId}/cancel', { params: { batchId: this.batchId } })
  }
}
