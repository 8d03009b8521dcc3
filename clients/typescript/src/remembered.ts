/** Loaded when it is first needed: a program that sends no large file does without it. */
const load = () => import('tus-js-client')

/** An upload that did not end: give `upload()` the same file again, and it goes on. */
export interface UnfinishedUpload {
  name: string
  size: number
  uploadUrl: string
  createdAt: Date
  batchId: string | undefined
  /** Removes the note. What the server has of it expires by itself. */
  forget(): Promise<void>
}

/** A note about an upload, as tus-js-client writes it. */
export interface PreviousUpload {
  size: number | null
  metadata: { [name: string]: string }
  creationTime: string
  urlStorageKey: string
  uploadUrl: string | null
  parallelUploadUrls: string[] | null
}

/** Where notes are kept: the same as in tus-js-client, whose types need those of Node. */
export interface UrlStorage {
  findAllUploads(): Promise<PreviousUpload[]>
  findUploadsByFingerprint(fingerprint: string): Promise<PreviousUpload[]>
  removeUpload(urlStorageKey: string): Promise<void>
  addUpload(fingerprint: string, upload: PreviousUpload): Promise<string>
}

/** Notes in a file, for programs in Node. Several programs may use the same file. */
export function fileUrlStorage(path: string): UrlStorage {
  let storage: Promise<UrlStorage> | undefined
  const open = () =>
    (storage ??= load().then((tus) => {
      // The types of tus-js-client leave it out, and its build for browsers does not have it.
      const { FileUrlStorage } = { ...tus } as { FileUrlStorage?: new (path: string) => UrlStorage }
      if (!FileUrlStorage) throw new TypeError('Notes can be kept in a file in Node only')
      return new FileUrlStorage(path)
    }))
  return {
    findAllUploads: async () => (await open()).findAllUploads(),
    findUploadsByFingerprint: async (fingerprint) => (await open()).findUploadsByFingerprint(fingerprint),
    removeUpload: async (key) => (await open()).removeUpload(key),
    addUpload: async (fingerprint, upload) => (await open()).addUpload(fingerprint, upload),
  }
}

/** The notes about unfinished uploads: in the local storage of a browser, or where the caller says. */
export class Remembered {
  readonly #storage: () => Promise<UrlStorage>
  /** Uploads of this program that are under way, so that the same file can be uploaded twice at once. */
  readonly #active = new Set<string>()

  constructor(storage: UrlStorage | undefined) {
    this.#storage = async () => storage ?? (await load()).defaultOptions.urlStorage
  }

  async find(fingerprint: string): Promise<PreviousUpload | undefined> {
    const found = await this.#storage().then((storage) => storage.findUploadsByFingerprint(fingerprint)).catch(() => [])
    return found
      .filter((upload) => upload.uploadUrl && !this.#active.has(upload.uploadUrl))
      .sort((a, b) => Date.parse(b.creationTime) - Date.parse(a.creationTime))[0]
  }

  /** Notes the upload. A storage that is full or forbidden only means that the upload cannot go on later. */
  async add(fingerprint: string, url: string, size: number, metadata: Record<string, string>): Promise<string | undefined> {
    const note = { size, metadata, creationTime: new Date().toISOString(), uploadUrl: url, parallelUploadUrls: null, urlStorageKey: '' }
    try {
      return await (await this.#storage()).addUpload(fingerprint, note)
    } catch {
      return undefined
    }
  }

  async remove(key: string): Promise<void> {
    await this.#storage().then((storage) => storage.removeUpload(key)).catch(() => {})
  }

  activate(url: string): void {
    this.#active.add(url)
  }

  release(url: string): void {
    this.#active.delete(url)
  }

  async unfinished(endpoint: string): Promise<UnfinishedUpload[]> {
    const all = await (await this.#storage()).findAllUploads()
    const ours = all.filter(({ uploadUrl }) => uploadUrl?.startsWith(endpoint) && !this.#active.has(uploadUrl))
    return ours.map((upload) => ({
      name: upload.metadata['filename'] ?? '',
      size: upload.size ?? 0,
      uploadUrl: upload.uploadUrl ?? '',
      createdAt: new Date(upload.creationTime),
      batchId: upload.metadata['batch'],
      forget: () => this.remove(upload.urlStorageKey),
    }))
  }
}
