import { safely } from './emitter.js'
import type { StreamEvent } from './event-types.js'
import type { EventsOptions } from './events.js'

export interface Listener {
  onEvent?: (event: StreamEvent) => void
  /** From here on no event is missed: read the current state now. Called again if events may have been missed all the same. */
  onSync?: () => void
  /** The stream cannot be opened, and will not be tried again: the token is not valid, for example. */
  onError?: (error: unknown) => void
}

/** A component that is mounted again, or the next file to wait for, finds the stream still open. */
const LINGER_MS = 300

/** One stream of events for all that listen. It is open while there are listeners. */
export class EventHub {
  readonly #open: (options: EventsOptions) => AsyncGenerator<StreamEvent, void, undefined>
  readonly #listeners = new Set<Listener>()
  #stream: { controller: AbortController; isOpen: boolean } | undefined
  #closing: ReturnType<typeof setTimeout> | undefined

  constructor(open: (options: EventsOptions) => AsyncGenerator<StreamEvent, void, undefined>) {
    this.#open = open
  }

  /** Returns a function that ends it. Listeners are called later, never from within. */
  subscribe(callbacks: Listener): () => void {
    // A copy, so that the same object may listen twice.
    const listener = { ...callbacks }
    this.#listeners.add(listener)
    clearTimeout(this.#closing)
    if (!this.#stream) void this.#run()
    else if (this.#stream.isOpen) queueMicrotask(() => this.#listeners.has(listener) && safely(() => listener.onSync?.()))
    return () => {
      if (!this.#listeners.delete(listener) || this.#listeners.size > 0) return
      clearTimeout(this.#closing)
      this.#closing = setTimeout(() => this.close(), LINGER_MS)
    }
  }

  close(): void {
    clearTimeout(this.#closing)
    this.#stream?.controller.abort()
    this.#stream = undefined
  }

  async #run(): Promise<void> {
    const stream = { controller: new AbortController(), isOpen: false }
    this.#stream = stream
    const tell = (call: (listener: Listener) => void) => {
      if (this.#stream === stream) for (const listener of [...this.#listeners]) safely(() => call(listener))
    }
    const onOpen = () => {
      // After a lost connection the stream goes on where it was, so only the first time counts.
      if (stream.isOpen) return
      stream.isOpen = true
      tell((listener) => listener.onSync?.())
    }
    try {
      for await (const event of this.#open({ signal: stream.controller.signal, onOpen })) {
        tell((listener) => listener.onEvent?.(event))
        if (event.type === 'stream:gap' || event.type === 'stream:reset') tell((listener) => listener.onSync?.())
      }
    } catch (error) {
      if (this.#stream !== stream) return
      const listeners = [...this.#listeners]
      this.#listeners.clear()
      this.#stream = undefined
      for (const listener of listeners) safely(() => listener.onError?.(error))
    }
  }
}
