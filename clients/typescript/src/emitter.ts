/** Calls a function of the caller. If it throws, that is reported as for any event, and what called it goes on. */
export function safely(call: () => void): void {
  try {
    call()
  } catch (error) {
    const { reportError } = globalThis as { reportError?: (error: unknown) => void }
    if (reportError) reportError(error)
    else console.error(error)
  }
}

/** Calls functions by the name of what happened. */
export class Emitter<Events extends Record<string, unknown>> {
  readonly #listeners = new Map<keyof Events, Set<(value: never) => void>>()

  /** Returns a function that ends it. */
  on<Name extends keyof Events>(name: Name, listener: (value: Events[Name]) => void): () => void {
    const listeners = this.#listeners.get(name) ?? new Set()
    this.#listeners.set(name, listeners)
    // A function of its own, so that the same one may be given twice.
    const call = (value: Events[Name]) => listener(value)
    listeners.add(call)
    return () => void listeners.delete(call)
  }

  protected emit<Name extends keyof Events>(name: Name, value: Events[Name]): void {
    for (const listener of [...(this.#listeners.get(name) ?? [])]) safely(() => (listener as (value: Events[Name]) => void)(value))
  }
}

/** How many things happen at once; the others wait for their turn. */
export class Slots {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(count: number) {
    this.#free = count
  }

  /** Resolves to the function that gives the slot back. */
  async take(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted()
    if (this.#free > 0) {
      this.#free--
    } else {
      await new Promise<void>((resolve, reject) => {
        const turn = () => {
          signal.removeEventListener('abort', leave)
          resolve()
        }
        const leave = () => {
          this.#waiting.splice(this.#waiting.indexOf(turn), 1)
          reject(signal.reason)
        }
        signal.addEventListener('abort', leave, { once: true })
        this.#waiting.push(turn)
      })
    }
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
  }
}
