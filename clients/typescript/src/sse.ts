/** One message of a stream of server-sent events. */
export interface Message {
  id: string | undefined
  event: string | undefined
  data: string
}

/** Far more than any event has. A server that never ends a line does not fill the memory. */
const LONGEST_MESSAGE = 4 * 1024 * 1024

/**
 * Reads server-sent events. Returns when the stream ends; what came of an unfinished message is dropped, as the standard
 * says. `onBytes` is called whenever anything arrives, heartbeats included.
 */
export async function* messages(body: ReadableStream<Uint8Array>, onBytes: () => void): AsyncGenerator<Message> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  let id: string | undefined
  let event: string | undefined
  let data: string[] = []
  let size = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      onBytes()
      const lines = (rest + decoder.decode(value, { stream: true })).split(/\r\n|\n|\r(?!$)/)
      rest = lines.pop() ?? ''
      for (const line of lines) {
        if (line === '') {
          if (data.length > 0) yield { id, event, data: data.join('\n') }
          id = event = undefined
          data = []
          size = 0
          continue
        }
        const colon = line.indexOf(':')
        const field = colon < 0 ? line : line.slice(0, colon)
        const text = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
        if (field === 'data') data.push(text)
        else if (field === 'event') event = text
        else if (field === 'id') id = text
        size += line.length
      }
      if (size + rest.length > LONGEST_MESSAGE) throw new Error('The server sent a message that is too long')
    }
  } finally {
    // Closes the connection if the reader of the events stops early.
    await reader.cancel().catch(() => {})
  }
}
