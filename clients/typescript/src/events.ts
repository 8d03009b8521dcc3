import { LandfallError, NetworkError } from './errors.js'
import type { EventType, StreamEvent } from './event-types.js'
import { backOff, sleep, type Transport } from './http.js'
import { messages } from './sse.js'

export interface EventsOptions {
  /** The id of the last event that you have. Without it the stream begins now. */
  after?: number | string | undefined
  types?: readonly EventType[] | undefined
  batchId?: string | undefined
  /** `tenant` and `all` are for administrators. */
  scope?: 'own' | 'tenant' | 'all' | undefined
  /** `false`: ends after the events that exist so far. */
  follow?: boolean | undefined
  signal?: AbortSignal | undefined
  /** Called whenever the stream is open; from then on no event is missed. */
  onOpen?: (() => void) | undefined
  /** Called when the connection is lost, before it is opened again. */
  onLost?: ((error: unknown) => void) | undefined
}

/** The server sends a heartbeat every 15 s. A connection that is quiet for longer than this is dead. */
const QUIET_MS = 40_000
const LONGEST_DELAY_MS = 15_000

/** Ids have up to 18 digits, more than a number can hold. */
function isAbove(id: string, last: string): boolean {
  return BigInt(id) > BigInt(last)
}

/** What became of a connection, for the loop that opens the next one. */
interface Ending {
  code: string
  wasOpen: boolean
}

/** Whether a new connection may help. What the caller did wrong stays wrong. */
function isPassing(error: unknown): boolean {
  if (!(error instanceof LandfallError)) return false
  return error instanceof NetworkError || error.retryable || error.status >= 500
}

/** The events of the server, each once and in order, over as many connections as it takes. */
export async function* streamEvents(transport: Transport, options: EventsOptions): AsyncGenerator<StreamEvent, void, undefined> {
  const { signal } = options
  let last = options.after === undefined ? undefined : String(options.after)
  let failures = 0
  for (;;) {
    const ending: Ending = { code: 'CONNECTION_BROKEN', wasOpen: false }
    let lost: unknown
    try {
      for await (const { id, event } of connection(transport, options, last, ending)) {
        const isJump = event.type === 'stream:gap' || event.type === 'stream:reset'
        // What came before a connection broke does not come again.
        if (!isJump && last !== undefined && !isAbove(id, last)) continue
        last = id
        if (event.type !== 'stream:open') yield event
      }
      if (ending.code === 'CAUGHT_UP') return
    } catch (error) {
      signal?.throwIfAborted()
      if (!isPassing(error)) throw error
      lost = error
    }
    failures = ending.wasOpen ? 0 : failures + 1
    options.onLost?.(lost ?? new NetworkError({ code: ending.code, message: 'The stream of events ended', retryable: true }))
    const asked = lost instanceof LandfallError ? lost.retryAfterMs : undefined
    await sleep(Math.min(asked ?? backOff(failures), LONGEST_DELAY_MS), signal)
  }
}

type Received = StreamEvent | { id: number; type: 'stream:open' }

/** The messages of one connection. Throws if it cannot be opened or breaks. */
async function* connection(
  transport: Transport,
  options: EventsOptions,
  after: string | undefined,
  ending: Ending,
): AsyncGenerator<{ id: string; event: Received }> {
  const own = new AbortController()
  const signal = options.signal ? AbortSignal.any([options.signal, own.signal]) : own.signal
  let timer: ReturnType<typeof setTimeout> | undefined
  const wake = () => {
    clearTimeout(timer)
    timer = setTimeout(() => own.abort(), QUIET_MS)
  }
  try {
    const { batchId, scope, follow } = options
    const types = options.types?.length ? options.types : undefined
    const body = await transport.send(
      {
        method: 'get',
        path: '/api/v2/uploads/events',
        query: { after, types, batchId, scope, follow },
        headers: { Accept: 'text/event-stream' },
        cache: 'no-store',
        maxRetries: 0,
        signal,
      },
      (response) => response.body,
    )
    if (!body) throw new NetworkError({ code: 'NO_BODY', message: 'The stream of events has no body', retryable: true })
    wake()
    for await (const message of messages(body, wake)) {
      const event = JSON.parse(message.data) as Received | { type: 'stream:end'; data: { code: string } }
      if (event.type === 'stream:end') {
        ending.code = event.data.code
        return
      }
      if (!ending.wasOpen) {
        ending.wasOpen = true
        options.onOpen?.()
      }
      // The id of the message has all digits, which the number in the JSON may not have.
      yield { id: message.id ?? String(event.id), event }
    }
  } catch (error) {
    options.signal?.throwIfAborted()
    if (error instanceof LandfallError) throw error
    throw new NetworkError({ code: 'CONNECTION_BROKEN', message: 'The stream of events broke', retryable: true, cause: error })
  } finally {
    clearTimeout(timer)
    own.abort()
  }
}
