import type { HttpRequest, HttpResponse, HttpStack } from 'tus-js-client'

/** Sends the requests of resumable uploads with a `fetch` that the caller has given. */
export class FetchStack implements HttpStack {
  constructor(readonly fetch: typeof globalThis.fetch) {}

  getName(): string {
    return 'FetchStack'
  }

  createRequest(method: string, url: string): HttpRequest {
    const headers: Record<string, string> = {}
    const controller = new AbortController()
    let onProgress: (sent: number) => void = () => {}
    return {
      getMethod: () => method,
      getURL: () => url,
      setHeader: (name, value) => void (headers[name] = value),
      getHeader: (name) => headers[name],
      setProgressHandler: (handler) => void (onProgress = handler),
      getUnderlyingObject: () => undefined,
      abort: async () => controller.abort(),
      send: async (body?: unknown): Promise<HttpResponse> => {
        const init: RequestInit & { duplex?: 'half' } = { method, headers, signal: controller.signal }
        if (body !== undefined && body !== null) {
          init.body = body as BodyInit
          // Node wants this for bodies that are streams.
          init.duplex = 'half'
        }
        const response = await this.fetch(url, init)
        const text = await response.text()
        onProgress((body as { size?: number } | undefined)?.size ?? 0)
        return {
          getStatus: () => response.status,
          getHeader: (name) => response.headers.get(name) ?? undefined,
          getBody: () => text,
          getUnderlyingObject: () => response,
        }
      },
    }
  }
}
