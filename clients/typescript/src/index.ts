export type { Batch, BatchOptions } from './batch.js'
export {
  ConflictError,
  FileFailedError,
  ForbiddenError,
  InvalidRequestError,
  LandfallError,
  NetworkError,
  NotFoundError,
  QuotaExceededError,
  RateLimitedError,
  UnauthenticatedError,
  UnavailableError,
} from './errors.js'
export type * from './event-types.js'
export type { EventsOptions } from './events.js'
export type { EventHub, Listener } from './hub.js'
export { Landfall, type LandfallOptions } from './landfall.js'
export { fileUrlStorage, type PreviousUpload, type UnfinishedUpload, type UrlStorage } from './remembered.js'
export type * from './routes.js'
export type { components, operations, paths, RefusalCode } from './schema.js'
export type { PathInput, StreamInput, UploadInput } from './sources.js'
export type { Upload, UploadOptions, UploadProgress, UploadState } from './upload.js'
