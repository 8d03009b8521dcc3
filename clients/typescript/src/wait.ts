import { LandfallError, NetworkError } from './errors.js'
import type { StreamEvent } from './event-types.js'
import { backOff, sleep } from './http.js'
import type { EventHub } from './hub.js'

export interface Waiting<T> {
  hub: EventHub
  /** Reads the current state. */
  read: (signal: AbortSignal) => Promise<T>
  /** Whether the event may be the end. */
  mayEnd: (event: StreamEvent) => boolean
  isOver: (state: T) => boolean
  signal?: AbortSignal
}

/**
 * Waits for an end. The state is read after the stream of events is open, and after each event that may be the end: what
 * happens in between is in the one or the other. A server that is away is waited for.
 */
export async function waitFor<T>({ hub, read, mayEnd, isOver, signal }: Waiting<T>): Promise<T> {
  signal?.throwIfAborted()
  const own = new AbortController()
  let wake: () => void = () => {}
  let isDue = false
  let failure: { error: unknown } | undefined
  const look = () => {
    isDue = true
    wake()
  }
  const stop = () => {
    own.abort(signal?.reason)
    wake()
  }
  signal?.addEventListener('abort', stop, { once: true })
  const unsubscribe = hub.subscribe({
    onSync: look,
    onEvent: (event) => mayEnd(event) && look(),
    onError: (error) => {
      failure = { error }
      wake()
    },
  })
  try {
    for (let failures = 0; ; ) {
      while (!isDue && !failure && !own.signal.aborted) await new Promise<void>((resolve) => (wake = resolve))
      own.signal.throwIfAborted()
      if (failure) throw failure.error
      isDue = false
      try {
        const state = await read(own.signal)
        if (isOver(state)) return state
        failures = 0
      } catch (error) {
        const isPassing = error instanceof NetworkError || (error instanceof LandfallError && error.retryable)
        if (!isPassing) throw error
        await sleep(error.retryAfterMs ?? backOff(failures++), own.signal)
        isDue = true
      }
    }
  } finally {
    signal?.removeEventListener('abort', stop)
    unsubscribe()
  }
}
