/** A file on the disk of this computer, in Node. */
export interface PathInput {
  path: string
  name?: string
  size?: number
}

/** Bytes that can be read once, such as a Node or a web stream. An upload of them cannot go on after the program has ended. */
export interface StreamInput {
  stream: AsyncIterable<Uint8Array>
  name: string
  size: number
}

export type UploadInput = Blob | Uint8Array | ArrayBuffer | PathInput | StreamInput

interface Slice {
  value: unknown
  done: boolean
}

/** Where the bytes of an upload come from. */
export interface Source {
  name: string | undefined
  size: number
  type: string | undefined
  /** The same for the same bytes in a later run of the program, or nothing if that cannot be known. */
  identity: string | undefined
  /** How much one request may send: what has to be held in memory is sent in small pieces. */
  chunkSize: number
  /** All bytes, for a small file. */
  whole(): Promise<Blob | Uint8Array<ArrayBuffer>>
  /** A part of the bytes, as the requests take it. */
  slice(start: number, end: number): Promise<Slice>
  close(): void
}

const LARGE = 64 * 1024 * 1024
const SMALL = 8 * 1024 * 1024

/** The parts of Node that are used, which pages do not have. */
interface NodeFiles {
  promises: {
    stat(path: string): Promise<{ size: number; mtimeMs: number; ino: number }>
    readFile(path: string): Promise<Uint8Array<ArrayBuffer>>
  }
  createReadStream(path: string, range: { start: number; end: number }): { destroy(): void; size?: number }
}

/** A module of Node. Not an import, because programs that bundle for browsers would look for it. */
function builtin<T>(name: string): T {
  const { process } = globalThis as { process?: { getBuiltinModule?: (name: string) => unknown } }
  const found = process?.getBuiltinModule?.(name)
  if (!found) throw new TypeError('Files can be named by their path in Node 20.16 or newer only')
  return found as T
}

/** tus-js-client checks the end of a file with `size`, which only blobs have by themselves. */
function sized<T extends object>(value: T, size: number): T {
  return Object.defineProperty(value, 'size', { value: size, configurable: true })
}

export async function openSource(input: UploadInput, hasOwnFetch: boolean): Promise<Source> {
  if (input instanceof Blob) return fromBlob(input, hasOwnFetch)
  if (input instanceof ArrayBuffer || ArrayBuffer.isView(input)) return fromBlob(new Blob([input as BlobPart]), hasOwnFetch)
  if (typeof input === 'object' && input !== null) {
    if ('path' in input) return fromPath(input, hasOwnFetch)
    if ('stream' in input) return fromStream(input)
  }
  throw new TypeError('An upload takes a File, a Blob, bytes, { path } or { stream, name, size }')
}

function fromBlob(blob: Blob, hasOwnFetch: boolean): Source {
  const file = blob as Blob & { name?: string; lastModified?: number }
  // XMLHttpRequest reads a blob piece by piece; the others need its bytes in memory.
  const takesBlobs = !hasOwnFetch && 'XMLHttpRequest' in globalThis
  return {
    name: file.name,
    size: file.size,
    type: file.type || undefined,
    identity: file.lastModified === undefined ? undefined : `${file.name} ${file.size} ${file.lastModified}`,
    chunkSize: takesBlobs ? LARGE : SMALL,
    whole: async () => blob,
    async slice(start, end) {
      const part = blob.slice(start, end)
      const value = takesBlobs ? part : sized(new Uint8Array(await part.arrayBuffer()), part.size)
      return { value, done: end >= blob.size }
    },
    close() {},
  }
}

async function fromPath(input: PathInput, hasOwnFetch: boolean): Promise<Source> {
  const files = builtin<NodeFiles>('node:fs')
  const { basename, resolve } = builtin<{ basename(path: string): string; resolve(path: string): string }>('node:path')
  const stat = await files.promises.stat(input.path)
  const open = new Set<{ destroy(): void }>()
  return {
    name: input.name ?? basename(input.path),
    size: stat.size,
    type: undefined,
    identity: `${resolve(input.path)} ${stat.size} ${stat.mtimeMs} ${stat.ino}`,
    chunkSize: hasOwnFetch ? SMALL : LARGE,
    whole: () => files.promises.readFile(input.path),
    async slice(start, end) {
      const to = Math.min(end, stat.size)
      const stream = files.createReadStream(input.path, { start, end: to - 1 })
      open.add(stream)
      return { value: sized(stream, to - start), done: to >= stat.size }
    },
    close() {
      for (const stream of open) stream.destroy()
      open.clear()
    },
  }
}

function fromStream(input: StreamInput): Source {
  const iterator = input.stream[Symbol.asyncIterator]()
  // The last piece, which has to be sent again if a connection breaks, and what was read beyond it.
  let kept: Uint8Array<ArrayBuffer> = new Uint8Array(0)
  let keptAt = 0

  const readUpTo = async (end: number) => {
    const parts: Uint8Array[] = [kept]
    let size = keptAt + kept.length
    while (size < end) {
      const { done, value } = await iterator.next()
      if (done) break
      parts.push(value)
      size += value.length
    }
    if (parts.length === 1) return
    const joined = new Uint8Array(size - keptAt)
    let at = 0
    for (const part of parts) {
      joined.set(part, at)
      at += part.length
    }
    kept = joined
  }

  return {
    name: input.name,
    size: input.size,
    type: undefined,
    identity: undefined,
    chunkSize: SMALL,
    async whole() {
      await readUpTo(Infinity)
      return kept
    },
    async slice(start, end) {
      if (start < keptAt) throw new TypeError('The stream cannot be read again from an earlier position')
      kept = kept.slice(Math.min(kept.length, start - keptAt))
      keptAt = start
      await readUpTo(Math.min(end, input.size))
      const part = kept.slice(0, end - start)
      // A stream that ends early is an error that tus-js-client reports.
      return { value: sized(part, part.length), done: part.length < end - start || end >= input.size }
    },
    close() {},
  }
}
