import { LandfallError, NetworkError, refusal, UnauthenticatedError } from './errors.js'

export interface TransportOptions {
  /** Where the server is, such as `https://files.example.com`. By default the origin of the page. */
  baseUrl?: string | undefined
  /** A token or an API key. A function is asked before each request, and again when the server says that the token has expired. */
  token?: string | (() => string | Promise<string>) | undefined
  /** What `GET /auth/session` has as `csrfToken`, for pages that use the session of the browser. */
  csrfToken?: (() => string | undefined) | undefined
  fetch?: typeof globalThis.fetch | undefined
  /** How often a request is repeated that may be repeated. 4 by default. */
  maxRetries?: number | undefined
  /** How long a response may take. 60 s by default. Uploads, downloads and events have their own limits. */
  timeoutMs?: number | undefined
}

export interface Call {
  method: string
  path: string
  params?: Record<string, unknown>
  query?: Record<string, unknown>
  body?: unknown
  headers?: Record<string, string>
  idempotencyKey?: string
  signal?: AbortSignal
  timeoutMs?: number
  maxRetries?: number
  cache?: RequestCache
}

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS'])
/** A server that asks for more patience than this gets no second request: the caller should know. */
const LONGEST_WAIT_MS = 60_000

/** Bytes and text that are sent as they are. All that is JSON in this API is an object, a list or null. */
function isRaw(body: unknown): body is BodyInit {
  if (typeof body === 'string' || body instanceof Blob || body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return true
  return body instanceof URLSearchParams || body instanceof FormData
}

/** Waits, and throws the reason of the signal as soon as it is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const stop = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal?.addEventListener('abort', stop, { once: true })
  })
}

/** A growing delay with a random part, so that clients do not come back all at once. */
export function backOff(attempt: number, first = 250, longest = 15_000): number {
  return Math.min(longest, first * 2 ** attempt) * (0.5 + Math.random() / 2)
}

/** A random UUID. `crypto.randomUUID` is missing on pages without https. */
export function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  bytes[6] = (bytes[6]! & 0x0f) | 0x40
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** Sends requests: addresses, authorization, errors and repetition. */
export class Transport {
  readonly baseUrl: string
  readonly #options: TransportOptions
  readonly #fetch: typeof globalThis.fetch

  constructor(options: TransportOptions) {
    this.baseUrl = (options.baseUrl ?? '').replace(/\/+$/, '')
    this.#options = options
    // A browser refuses its own `fetch` if it is called as a method of another object.
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init))
  }

  /** What the caller gave in place of the `fetch` of the platform. */
  get ownFetch(): typeof globalThis.fetch | undefined {
    return this.#options.fetch
  }

  get canRenewToken(): boolean {
    return typeof this.#options.token === 'function'
  }

  url(path: string, params: Record<string, unknown> = {}, query: Record<string, unknown> = {}): string {
    const filled = path.replace(/\{([^}]+)\}/g, (_, name: string) => {
      const value = params[name]
      if (value === undefined || value === null || value === '') throw new TypeError(`${path} needs the parameter ${name}`)
      return encodeURIComponent(String(value))
    })
    const search = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) {
      if (value === undefined || value === null) continue
      search.set(name, Array.isArray(value) ? value.join(',') : String(value))
    }
    const text = search.toString()
    return this.baseUrl + filled + (text ? `?${text}` : '')
  }

  async token(): Promise<string | undefined> {
    const { token } = this.#options
    return typeof token === 'function' ? await token() : token
  }

  /** The headers that say who sends the request. */
  credentials(method: string, token: string | undefined): Record<string, string> {
    const headers: Record<string, string> = {}
    if (token) headers['Authorization'] = `Bearer ${token}`
    const csrf = SAFE.has(method) ? undefined : this.#options.csrfToken?.()
    if (csrf) headers['X-CSRF-Token'] = csrf
    return headers
  }

  json<T>(call: Call): Promise<T> {
    return this.send(call, async (response) => (await response.json()) as T)
  }

  /** Sends a request to the API and reads the response. Repeats both if that is harmless and may help. */
  async send<T>(call: Call, read: (response: Response) => T | Promise<T>): Promise<T> {
    const method = call.method.toUpperCase()
    const headers: Record<string, string> = { ...call.headers }
    const key = call.idempotencyKey ?? headers['Idempotency-Key']
    if (key !== undefined) headers['Idempotency-Key'] = key
    let body: BodyInit | undefined
    if (isRaw(call.body)) {
      body = call.body
    } else if (call.body !== undefined) {
      body = JSON.stringify(call.body)
      headers['Content-Type'] ??= 'application/json'
    }
    const url = this.url(call.path, call.params, call.query)
    if (!/^https?:/.test(url) && !this.ownFetch && !('location' in globalThis)) {
      throw new TypeError('Outside of a browser the client needs a baseUrl, such as https://files.example.com')
    }
    const mayRepeat = SAFE.has(method) || key !== undefined
    const last = mayRepeat ? (call.maxRetries ?? this.#options.maxRetries ?? 4) : 0

    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#authorized(url, { method, headers, body, cache: call.cache }, call, read)
      } catch (error) {
        if (!(error instanceof LandfallError) || attempt >= last) throw error
        const again = error instanceof NetworkError || error.status === 429 || error.status === 503
        const wait = error.retryAfterMs ?? backOff(attempt)
        if (!again || wait > LONGEST_WAIT_MS) throw error
        await sleep(wait, call.signal)
      }
    }
  }

  /** Sends a request, and once more with a new token if the server does not take its token. It was not executed then. */
  async #authorized<T>(
    url: string,
    init: RequestInit & { method: string; headers: Record<string, string> },
    call: Call,
    read: (response: Response) => T | Promise<T>,
  ): Promise<T> {
    const bounds = { signal: call.signal, timeoutMs: call.timeoutMs ?? this.#options.timeoutMs ?? 60_000 }
    const sendWith = (token: string | undefined) =>
      this.once(url, { ...init, headers: { ...this.credentials(init.method, token), ...init.headers } }, bounds, read)
    const token = await this.token()
    try {
      return await sendWith(token)
    } catch (error) {
      if (!(error instanceof UnauthenticatedError) || typeof this.#options.token !== 'function') throw error
      const fresh = await this.token()
      if (!fresh || fresh === token) throw error
      return await sendWith(fresh)
    }
  }

  /** Sends one request as it is. Throws if the status says that it failed. */
  async once<T>(
    url: string,
    init: RequestInit,
    bounds: { signal?: AbortSignal; timeoutMs: number },
    read: (response: Response) => T | Promise<T>,
  ): Promise<T> {
    const controller = new AbortController()
    const signal = bounds.signal ? AbortSignal.any([bounds.signal, controller.signal]) : controller.signal
    const timer = setTimeout(() => controller.abort(), bounds.timeoutMs)
    try {
      bounds.signal?.throwIfAborted()
      const response = await this.#fetch(url, { ...init, signal })
      if (!response.ok) {
        const body = await response.text()
        throw refusal(response.status, body, (name) => response.headers.get(name))
      }
      return await read(response)
    } catch (error) {
      if (error instanceof LandfallError) throw error
      if (bounds.signal?.aborted) throw bounds.signal.reason
      const isLate = controller.signal.aborted
      throw new NetworkError({
        code: isLate ? 'TIMEOUT' : 'NETWORK_ERROR',
        message: isLate ? 'The server did not answer in time' : 'The server cannot be reached, or the connection broke',
        retryable: true,
        cause: error,
      })
    } finally {
      clearTimeout(timer)
    }
  }
}
