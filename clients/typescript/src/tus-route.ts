import type { Transport } from './http.js'

export const TUS = '/api/v2/uploads/tus'

/** Another key is needed then: with the same one the server would return the upload that is gone. */
export class UploadGone extends Error {}

/** The absolute address of the route, which is also what a page remembers. */
export function endpoint(transport: Transport): string {
  const url = transport.url(TUS)
  const { location } = globalThis as { location?: { href: string } }
  return location && !/^https?:/.test(url) ? new URL(url, location.href).href : url
}

export function fileIdOf(url: string): string {
  return new URL(url, 'http://localhost').pathname.split('/').pop() ?? ''
}
