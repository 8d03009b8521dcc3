import { ForbiddenError, LandfallError } from './errors.js'
import type { Transport } from './http.js'
import type { FileView, Registration, UploadTicket as Ticket } from './routes.js'
import type { Source } from './sources.js'

export interface Whole {
  transport: Transport
  source: Source
  announcement: Registration
  batchId: string | undefined
  idempotencyKey: string
  /** The file, if it was registered by an earlier attempt. */
  fileId: string | undefined
  onRegistered: (fileId: string) => void
  onSent: () => void
  signal: AbortSignal
}

/** Bytes may come slowly; the server itself gives up what is too slow. */
const LONGEST_MS = 10 * 60_000

/** Registers the file, sends its bytes in one request and confirms them, in one attempt. */
export async function sendWhole(options: Whole): Promise<void> {
  const { transport, source, signal } = options
  let ticket: Ticket
  if (options.fileId === undefined) {
    ticket = await register(options)
    options.onRegistered(ticket.fileId)
  } else {
    // What an earlier attempt sent may have arrived, although its response did not.
    const file = await transport.json<FileView>({ method: 'get', path: '/api/v2/uploads/files/{fileId}', params: { fileId: options.fileId }, signal })
    if (file.status !== 'registered') return options.onSent()
    ticket = await freshTicket(transport, options.fileId, signal)
  }

  const bytes = await source.whole()
  try {
    await send(transport, ticket, bytes, signal)
  } catch (error) {
    // The address has expired, or the clock of the object store is ahead.
    if (!(error instanceof ForbiddenError)) throw error
    await send(transport, await freshTicket(transport, ticket.fileId, signal), bytes, signal)
  }
  await transport.json({
    method: 'post',
    path: '/api/v2/uploads/files/{fileId}/confirm',
    params: { fileId: ticket.fileId },
    body: {},
    signal,
  })
  options.onSent()
}

async function register({ transport, announcement, batchId, idempotencyKey, signal }: Whole): Promise<Ticket> {
  const call = { method: 'post', body: announcement, idempotencyKey, signal }
  if (batchId === undefined) return transport.json<Ticket>({ ...call, path: '/api/v2/uploads/files/init' })
  const path = '/api/v2/uploads/batches/{batchId}/upload-urls'
  const tickets = await transport.json<Ticket | Ticket[]>({ ...call, path, params: { batchId } })
  const ticket = Array.isArray(tickets) ? tickets[0] : tickets
  if (!ticket) throw new LandfallError({ code: 'NO_TICKET', message: 'The server registered no file' })
  return ticket
}

function freshTicket(transport: Transport, fileId: string, signal: AbortSignal): Promise<Ticket> {
  return transport.json<Ticket>({ method: 'post', path: '/api/v2/uploads/files/{fileId}/upload-url', params: { fileId }, signal })
}

async function send(transport: Transport, ticket: Ticket, bytes: Blob | Uint8Array<ArrayBuffer>, signal: AbortSignal): Promise<void> {
  // The platform counts the bytes itself, and a page may not set this header.
  const headers = Object.fromEntries(Object.entries(ticket.headers).filter(([name]) => name.toLowerCase() !== 'content-length'))
  // A blob without a type, because the browser would send its type as a header that was not signed.
  const body = bytes instanceof Blob ? bytes.slice(0, bytes.size, '') : bytes
  const bounds = { signal, timeoutMs: LONGEST_MS }
  try {
    await transport.once(ticket.uploadUrl, { method: ticket.method, headers, body }, bounds, (response) => response.text())
  } catch (error) {
    // The bytes are there: an earlier attempt arrived, and its response was lost. The confirmation compares them.
    if (!isThereAlready(error)) throw error
  }
}

/** What an object store answers when a request would overwrite an object. */
function isThereAlready(error: unknown): boolean {
  return error instanceof LandfallError && (error.status === 412 || error.code === 'BlobAlreadyExists')
}
