import type { components, paths } from './schema.js'

export type Schemas = components['schemas']
export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'

/** The operation of a method at a path; `never` if there is none. */
export type Operation<P extends keyof paths, M extends Method> = Extract<paths[P][M], { responses: unknown }>

/** The paths that have the method. */
export type PathsWith<M extends Method> = {
  [P in keyof paths]: [Operation<P, M>] extends [never] ? never : P
}[keyof paths]

type Parameters<O> = O extends { parameters: infer P } ? P : never
type Part<O, Name extends string> = Name extends keyof Parameters<O> ? NonNullable<Parameters<O>[Name]> : never

/** The property `Key` with the type `T`: required if `T` has a required property, absent if there is no `T`. */
type Property<Key extends string, T> = [T] extends [never]
  ? { [K in Key]?: undefined }
  : {} extends T
    ? { [K in Key]?: T }
    : { [K in Key]: T }

type Content<R> = R extends { content: infer C } ? C : never
type Body<O> = O extends { requestBody: infer B }
  ? Content<B> extends { 'application/json': infer J } ? { body: J } : { body: BodyInit }
  : O extends { requestBody?: infer B }
    ? [Content<NonNullable<B>>] extends [never] ? { body?: undefined }
      : Content<NonNullable<B>> extends { 'application/json': infer J } ? { body?: J } : { body?: BodyInit }
    : { body?: undefined }

type Success<O> = O extends { responses: infer R } ? { [S in keyof R]: S extends 200 | 201 | 202 | 204 ? R[S] : never }[keyof R] : never
export type Json<O> = Content<Success<O>> extends infer C ? (C extends { 'application/json': infer J } ? J : never) : never
type HasOther<O> = [Json<O>] extends [never] ? ([Content<Success<O>>] extends [never] ? false : true) : false

/** How a response that is not JSON is read. */
export interface Readings {
  text: string
  blob: Blob
  /** The response itself, whose body has not been read. Statuses of failure are errors all the same. */
  response: Response
}

export interface CommonOptions {
  headers?: Record<string, string> | undefined
  signal?: AbortSignal | undefined
  /** Makes a repetition harmless, so that the client repeats the request by itself. Where the route takes `Idempotency-Key`. */
  idempotencyKey?: string | undefined
}

export type RequestOptions<O> = CommonOptions &
  Property<'params', Part<O, 'path'>> &
  Property<'query', Part<O, 'query'>> &
  Body<O> &
  (HasOther<O> extends true ? { as: keyof Readings } : { as?: keyof Readings })

/** Options may be left out if none is required. */
export type Arguments<O> = {} extends RequestOptions<O> ? [options?: RequestOptions<O>] : [options: RequestOptions<O>]

/** What the call returns: the JSON of the route, `undefined` if it has no content, or what `as` says. */
export type Result<O, Options> = Options extends { as: infer A extends keyof Readings }
  ? Readings[A]
  : [Json<O>] extends [never] ? undefined : Json<O>

/** The query of a route that has `GET`. */
export type Query<P extends PathsWith<'get'>> = Part<Operation<P, 'get'>, 'query'>

// By the routes that give them, because the names of schemas are the server's own.
export type FileView = Json<Operation<'/api/v2/uploads/files/{fileId}', 'get'>>
export type FileStatus = FileView['status']
export type Stage = NonNullable<FileView['nextStage']>
export type Priority = FileView['priority']
export type Warning = NonNullable<FileView['warnings']>[number]
export type BatchView = Json<Operation<'/api/v2/uploads/batches/{batchId}', 'get'>>
export type Notification = Json<Operation<'/api/v2/notifications', 'get'>>['notifications'][number]
export type SearchHit = Json<Operation<'/api/v2/search', 'post'>>['hits'][number]
export type CircuitState = Json<Operation<'/api/v2/admin/queue-status', 'get'>>['circuits'][number]['state']
export type UploadTicket = Json<Operation<'/api/v2/uploads/files/init', 'post'>>
/** What is declared about a file before its bytes are sent. */
export type Registration = Operation<'/api/v2/uploads/files/init', 'post'>['requestBody']['content']['application/json']
