import type { FileView, Stage } from './routes.js'
import type { RefusalCode } from './schema.js'

/** What a refusal says. `details` depends on the code. */
export interface ErrorInit {
  status?: number
  code: RefusalCode | (string & {})
  message: string
  details?: Record<string, unknown>
  requestId?: string
  retryable?: boolean
  retryAfterMs?: number
  cause?: unknown
}

/** The server refused a request, or could not be reached. `code` says why, in one word for programs. */
export class LandfallError extends Error {
  // Written out, because programs that make code smaller shorten the names of classes.
  override name = 'LandfallError'
  /** The HTTP status, or 0 if there was no response. */
  readonly status: number
  readonly code: RefusalCode | (string & {})
  readonly details: Record<string, unknown>
  /** The id of the request in the log of the server. */
  readonly requestId: string | undefined
  /** Whether the same request may succeed later. */
  readonly retryable: boolean
  /** How long the server asks to wait. */
  readonly retryAfterMs: number | undefined

  constructor(init: ErrorInit) {
    super(init.message, init.cause === undefined ? undefined : { cause: init.cause })
    this.status = init.status ?? 0
    this.code = init.code
    this.details = init.details ?? {}
    this.requestId = init.requestId
    this.retryable = init.retryable ?? false
    this.retryAfterMs = init.retryAfterMs
  }
}

/** There is no such thing, it was deleted, or it belongs to another user. */
export class NotFoundError extends LandfallError {
  override name = 'NotFoundError'
}
/** There is no token and no session, or it is not valid any more. */
export class UnauthenticatedError extends LandfallError {
  override name = 'UnauthenticatedError'
}
export class ForbiddenError extends LandfallError {
  override name = 'ForbiddenError'
}
/** The current state does not allow this. */
export class ConflictError extends LandfallError {
  override name = 'ConflictError'
}
export class RateLimitedError extends LandfallError {
  override name = 'RateLimitedError'
}
export class QuotaExceededError extends LandfallError {
  override name = 'QuotaExceededError'
}
export class InvalidRequestError extends LandfallError {
  override name = 'InvalidRequestError'
}
/** The server, its database or its storage does not answer at the moment. */
export class UnavailableError extends LandfallError {
  override name = 'UnavailableError'
}
/** There was no response: no connection, or a connection that broke. */
export class NetworkError extends LandfallError {
  override name = 'NetworkError'
}

/** A file that did not become ready: it failed, was cancelled, or was deleted. */
export class FileFailedError extends LandfallError {
  override name = 'FileFailedError'
  readonly file: FileView
  /** The stage at which it failed. */
  readonly stage: Stage | null

  constructor(file: FileView) {
    const ended = file.status === 'cancelled' ? 'cancelled' : file.status === 'deleted' ? 'deleted' : 'not processed'
    super({
      code: file.error?.code ?? file.status.toUpperCase(),
      message: file.error?.message ?? `The file ${file.fileName} was ${ended}`,
    })
    this.file = file
    this.stage = file.error?.stage ?? null
  }
}

function classFor(status: number, code: string): typeof LandfallError {
  if (code === 'QUOTA_EXCEEDED') return QuotaExceededError
  switch (status) {
    case 401: return UnauthenticatedError
    case 403: return ForbiddenError
    case 404:
    case 410: return NotFoundError
    case 409:
    case 423: return ConflictError
    case 429: return RateLimitedError
    case 408:
    case 502:
    case 503:
    case 504:
    case 507: return UnavailableError
    default: return status >= 400 && status < 500 ? InvalidRequestError : LandfallError
  }
}

/** Milliseconds of a `Retry-After`, which has seconds or a date. */
export function retryAfter(value: string | null | undefined): number | undefined {
  if (!value) return undefined
  const seconds = Number(value)
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000)
  const date = Date.parse(value)
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now())
}

/** The text of an element in the XML of an object store. */
function element(xml: string, name: string): string | undefined {
  return new RegExp(`<${name}>([^<]{1,200})`).exec(xml)?.[1]?.trim()
}

/** The error of a response. The body of a proxy in between may be anything. */
export function refusal(
  status: number,
  body: string,
  header: (name: string) => string | null | undefined,
): LandfallError {
  const init: ErrorInit = {
    status,
    code: `HTTP_${status}`,
    message: `The server answered with status ${status}`,
    retryable: status === 408 || status === 429 || status >= 502,
    requestId: header('X-Request-Id') ?? undefined,
    retryAfterMs: retryAfter(header('Retry-After')),
  }
  try {
    const said = (JSON.parse(body) as { error?: Partial<ErrorInit> }).error
    if (typeof said?.code === 'string') {
      init.code = said.code
      if (typeof said.message === 'string') init.message = said.message
      if (typeof said.retryable === 'boolean') init.retryable = said.retryable
      if (typeof said.details === 'object' && said.details !== null) init.details = said.details
    }
  } catch {
    // Not JSON: an object store answers in XML. Otherwise the status has to do.
    init.code = element(body, 'Code') ?? init.code
    init.message = element(body, 'Message') ?? init.message
  }
  return new (classFor(status, init.code))(init)
}
