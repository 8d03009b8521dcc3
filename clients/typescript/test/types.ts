// Compiled by `npm run types`, never run: what the types allow, and what they refuse.
import { Landfall, type FileView } from '../src/index.js'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
function isTrue<T extends true>(..._: T[]) {}

export async function types(landfall: Landfall, query: { q?: string }) {
  const page = await landfall.get('/api/v2/uploads/files', { query: { status: 'failed', limit: 10 } })
  isTrue<Same<(typeof page)['files'], FileView[]>>()
  const all = await landfall.get('/api/v2/uploads/files')
  isTrue<Same<(typeof all)['nextCursor'], string | null>>()
  await landfall.get('/api/v2/uploads/files', { query })
  const file = await landfall.get('/api/v2/uploads/files/{fileId}', { params: { fileId: 'a' } })
  isTrue<Same<typeof file, FileView>>()
  const nothing = await landfall.delete('/api/v2/uploads/files/{fileId}', { params: { fileId: 'a' } })
  isTrue<Same<typeof nothing, undefined>>()
  const blob = await landfall.get('/api/v2/uploads/files/{fileId}/download', { params: { fileId: 'a' }, as: 'blob' })
  isTrue<Same<typeof blob, Blob>>()
  await landfall.post('/api/v2/uploads/batches', { body: { fileCount: 2 }, idempotencyKey: 'a' })

  // @ts-expect-error: there is no such route
  await landfall.get('/api/v2/uploads/nothing')
  // @ts-expect-error: the route has no such method
  await landfall.post('/api/v2/uploads/files', {})
  // @ts-expect-error: the parameter is missing
  await landfall.get('/api/v2/uploads/files/{fileId}')
  // @ts-expect-error: the parameter has another name
  await landfall.get('/api/v2/uploads/files/{fileId}', { params: { id: 'a' } })
  // @ts-expect-error: there is no such scope
  await landfall.get('/api/v2/uploads/files', { query: { scope: 'nobody' } })
  // @ts-expect-error: there is no such query
  await landfall.get('/api/v2/uploads/files', { query: { colour: 'red' } })
  // @ts-expect-error: what is not JSON has to be asked for in a form
  await landfall.get('/api/v2/uploads/files/{fileId}/download', { params: { fileId: 'a' } })
  // @ts-expect-error: the body is missing
  await landfall.post('/api/v2/uploads/batches')
  // @ts-expect-error: the body lacks fileCount
  await landfall.post('/api/v2/uploads/batches', { body: {} })

  for await (const event of landfall.events({ types: ['file:status-changed'] })) {
    if (event.type === 'file:status-changed') isTrue<Same<typeof event.data.to, FileView['status']>>()
    if (event.type === 'stream:gap') isTrue<Same<typeof event.data.resumesAfter, number>>()
    // @ts-expect-error: there is no such type of event
    if (event.type === 'file:lost') return
  }
  for await (const file of landfall.files({ status: 'failed' })) isTrue<Same<typeof file, FileView>>()
}
