import { DetailedError, Upload as TusUpload, type HttpRequest, type HttpResponse, type UploadOptions as TusOptions } from 'tus-js-client'
import { LandfallError, NetworkError, refusal } from './errors.js'
import { FetchStack } from './fetch-stack.js'
import type { Transport } from './http.js'
import type { Source } from './sources.js'
import { endpoint, fileIdOf, UploadGone } from './tus-route.js'

/** A connection that moves nothing for so long is given up for a new one. The last request of a large file may take a while. */
const STALLED_MS = 120_000

export interface Piecewise {
  transport: Transport
  source: Source
  metadata: Record<string, string>
  idempotencyKey: string
  /** The address of the upload, if it has begun. */
  uploadUrl: string | undefined
  /** If the server does not know that address any more: begin a new upload instead of failing. */
  mayBeginAgain: boolean
  onUrl: (url: string, fileId: string) => void
  onProgress: (sent: number) => void
  signal: AbortSignal
}

/** Sends the bytes that the server does not have, in one attempt. Throws as soon as something goes wrong. */
export function sendPiecewise(options: Piecewise): Promise<void> {
  const { transport, source, signal } = options
  return new Promise((resolve, reject) => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let isOver = false
    const finish = (end: () => void) => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
      end()
    }
    const fail = (error: unknown) =>
      finish(() => {
        tus.abort().catch(() => {})
        reject(error)
      })
    const stop = () => fail(signal.reason)
    const wake = () => {
      clearTimeout(timer)
      if (isOver) return
      timer = setTimeout(() => {
        fail(new NetworkError({ code: 'TIMEOUT', message: 'The upload does not move', retryable: true }))
      }, STALLED_MS)
    }

    const before = async (request: HttpRequest) => {
      const method = request.getMethod()
      const credentials = transport.credentials(method, await transport.token())
      if (isOver) throw new Error('The attempt is over')
      for (const [name, value] of Object.entries(credentials)) request.setHeader(name, value)
      if (method === 'POST') request.setHeader('Idempotency-Key', options.idempotencyKey)
      wake()
    }
    const after = (request: HttpRequest, response: HttpResponse) => {
      wake()
      const status = response.getStatus()
      if (status < 400) return
      const isGone = request.getMethod() === 'HEAD' && (status === 404 || status === 410)
      if (isGone && options.mayBeginAgain) throw new UploadGone('The server does not know the upload any more')
      throw refusal(status, response.getBody(), (name) => response.getHeader(name))
    }

    const tusOptions: TusOptions = {
      endpoint: endpoint(transport),
      uploadUrl: options.uploadUrl ?? null,
      uploadSize: source.size,
      chunkSize: source.chunkSize,
      metadata: options.metadata,
      // Attempts are repeated, and addresses remembered, where files that are sent in one piece are as well.
      retryDelays: null,
      storeFingerprintForResuming: false,
      fileReader: {
        openFile: async () => ({ size: source.size, slice: source.slice, close() {} }),
      },
      onBeforeRequest: before,
      onAfterResponse: after,
      onUploadUrlAvailable: () => {
        if (tus.url && !isOver) options.onUrl(tus.url, fileIdOf(tus.url))
      },
      onProgress: (sent) => {
        wake()
        if (!isOver) options.onProgress(sent)
      },
      onSuccess: () => finish(resolve),
      onError: (error) => {
        const cause = error instanceof DetailedError ? error.causingError : undefined
        if (cause instanceof LandfallError || cause instanceof UploadGone) return fail(cause)
        if (!(error instanceof DetailedError)) return fail(error)
        fail(new NetworkError({ code: 'NETWORK_ERROR', message: 'The connection broke', retryable: true, cause: error }))
      },
    }
    if (transport.ownFetch) tusOptions.httpStack = new FetchStack(transport.ownFetch)
    // The input is not read, because the reader above has the source.
    const tus = new TusUpload(new Blob() as never, tusOptions)
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) return stop()
    wake()
    tus.start()
  })
}
