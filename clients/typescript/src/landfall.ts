import { Batch, type BatchOptions } from './batch.js'
import { Slots } from './emitter.js'
import { FileFailedError } from './errors.js'
import type { StreamEvent } from './event-types.js'
import { streamEvents, type EventsOptions } from './events.js'
import { randomId, Transport, type TransportOptions } from './http.js'
import { EventHub } from './hub.js'
import { Remembered, type UnfinishedUpload, type UrlStorage } from './remembered.js'
import type { Arguments, BatchView, FileView, Method, Notification, Operation, PathsWith, Query, Readings, Result, SearchHit } from './routes.js'
import type { paths } from './schema.js'
import type { UploadInput } from './sources.js'
import { endpoint } from './tus-route.js'
import { Upload, type UploadOptions } from './upload.js'
import { waitFor } from './wait.js'

export interface LandfallOptions extends TransportOptions {
  /** How many files are sent at once; the others wait. 4 by default. */
  concurrentUploads?: number | undefined
  /** Where unfinished uploads are noted. By default the local storage of a browser; nothing in Node. */
  urlStorage?: UrlStorage | undefined
}

type Scope = NonNullable<EventsOptions['scope']>

const ENDED = new Set(['ready', 'failed', 'cancelled', 'deleted'])

interface Options {
  params?: Record<string, unknown>
  query?: Record<string, unknown>
  body?: unknown
  headers?: Record<string, string>
  idempotencyKey?: string
  signal?: AbortSignal
  as?: keyof Readings
}

/** A function for the requests of one method, typed by the description of the API. */
type Sender<M extends Method> = <P extends PathsWith<M>, const A extends Arguments<Operation<P & keyof paths, M>>>(
  path: P,
  ...options: A
) => Promise<Result<Operation<P & keyof paths, M>, A[0]>>

/** A server of Landfall, as one user sees it. */
export class Landfall {
  readonly #transport: Transport
  readonly #slots: Slots
  readonly #remembered: Remembered
  readonly #hubs = new Map<Scope, EventHub>()

  constructor(options: LandfallOptions = {}) {
    this.#transport = new Transport(options)
    this.#slots = new Slots(options.concurrentUploads ?? 4)
    this.#remembered = new Remembered(options.urlStorage)
  }

  readonly get: Sender<'get'> = (path, ...[options]) => this.#request('get', path, options)
  readonly post: Sender<'post'> = (path, ...[options]) => this.#request('post', path, options)
  readonly put: Sender<'put'> = (path, ...[options]) => this.#request('put', path, options)
  readonly patch: Sender<'patch'> = (path, ...[options]) => this.#request('patch', path, options)
  readonly delete: Sender<'delete'> = (path, ...[options]) => this.#request('delete', path, options)

  // The types are checked where it is called; here they cannot be known.
  #request(method: Method, path: string, options: Options | undefined): Promise<any> {
    const { as, ...rest } = options ?? {}
    return this.#transport.send<unknown>({ method, path, ...rest }, async (response) => {
      if (as === 'response') return response
      if (as === 'text') return response.text()
      if (as === 'blob') return response.blob()
      const text = await response.text()
      return text === '' ? undefined : JSON.parse(text)
    })
  }

  /** The address of a route, for links and images. */
  url(path: PathsWith<'get'>, options: { params?: Record<string, unknown>; query?: Record<string, unknown> } = {}): string {
    return this.#transport.url(path, options.params, options.query)
  }

  /**
   * What happens to files, from now on or after an event: each event once and in order. Connections are opened again as
   * often as necessary, until the loop is left or the signal is aborted. After `stream:gap` and `stream:reset` load the
   * current state.
   */
  events(options: EventsOptions = {}): AsyncGenerator<StreamEvent, void, undefined> {
    return streamEvents(this.#transport, options)
  }

  /** The stream of events that all who wait and listen share. It is open as long as it is used. */
  sharedEvents(scope: Scope = 'own'): EventHub {
    let hub = this.#hubs.get(scope)
    if (!hub) {
      hub = new EventHub((options) => this.events({ ...options, scope }))
      this.#hubs.set(scope, hub)
    }
    return hub
  }

  /** Sends a file. It begins at once; the result says how far it is. */
  upload(file: UploadInput, options: UploadOptions = {}): Upload {
    const context = {
      transport: this.#transport,
      slots: this.#slots,
      remembered: this.#remembered,
      waitForFile: this.waitForFile.bind(this),
    }
    return new Upload(context, file, options)
  }

  /** Uploads that did not end, for example because the page was loaded again. Give `upload()` the same files to go on. */
  unfinishedUploads(): Promise<UnfinishedUpload[]> {
    return this.#remembered.unfinished(endpoint(this.#transport))
  }

  /** Resolves when the file is ready. Throws a FileFailedError if it fails, is cancelled or is deleted. */
  async waitForFile(fileId: string, options: { signal?: AbortSignal; scope?: Scope } = {}): Promise<FileView> {
    const file = await waitFor({
      hub: this.sharedEvents(options.scope),
      read: (signal) => this.get('/api/v2/uploads/files/{fileId}', { params: { fileId }, signal }),
      mayEnd: (event) => event.type === 'file:status-changed' && event.data.fileId === fileId && ENDED.has(event.data.to),
      isOver: (file) => ENDED.has(file.status),
      signal: options.signal,
    })
    if (file.status !== 'ready') throw new FileFailedError(file)
    return file
  }

  /** Opens a batch, or takes one that is open. */
  async batch(options: BatchOptions | { batchId: string }): Promise<Batch> {
    const batchId =
      'batchId' in options
        ? options.batchId
        : (await this.post('/api/v2/uploads/batches', { body: options, idempotencyKey: randomId() })).batchId
    return new Batch(this, () => this.sharedEvents(), batchId)
  }

  /** All files that the query selects, page after page. */
  async *files(query: Listed<'/api/v2/uploads/files'> = {}): AsyncGenerator<FileView, void, undefined> {
    const { signal, ...rest } = query
    yield* pages((cursor) => this.get('/api/v2/uploads/files', { query: { limit: 200, ...rest, cursor }, signal }), (page) => page.files)
  }

  async *batches(query: Listed<'/api/v2/uploads/batches'> = {}): AsyncGenerator<BatchView, void, undefined> {
    const { signal, ...rest } = query
    yield* pages((cursor) => this.get('/api/v2/uploads/batches', { query: { ...rest, cursor }, signal }), (page) => page.batches)
  }

  async *notifications(query: Listed<'/api/v2/notifications'> = {}): AsyncGenerator<Notification, void, undefined> {
    const { signal, ...rest } = query
    yield* pages((cursor) => this.get('/api/v2/notifications', { query: { ...rest, cursor }, signal }), (page) => page.notifications)
  }

  /** The best passages for a question, best first. The server gives at most 50, so there is one page. */
  async *search(
    question: paths['/api/v2/search']['post']['requestBody']['content']['application/json'] & { signal?: AbortSignal },
  ): AsyncGenerator<SearchHit, void, undefined> {
    const { signal, ...body } = question
    yield* (await this.post('/api/v2/search', { body, signal })).hits
  }
}

/** A query without the position, which the client keeps. */
type Listed<P extends PathsWith<'get'>> = Omit<Query<P>, 'cursor' | 'offset'> & { signal?: AbortSignal }

async function* pages<P extends { nextCursor: string | null }, T>(
  load: (cursor: string | undefined) => Promise<P>,
  items: (page: P) => T[],
): AsyncGenerator<T, void, undefined> {
  let cursor: string | undefined
  do {
    const page = await load(cursor)
    yield* items(page)
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined)
}
