import type { CircuitState, FileStatus, Notification, Stage, Warning } from './routes.js'

/** What all events have. */
interface Event<Type extends string, Data> {
  id: number
  type: Type
  at: string
  /** Changes when the database of the server was restored from a backup. */
  epoch: string
  tenantId?: string
  userId?: string
  data: Data
}

interface OfFile {
  fileId: string
  batchId?: string
  stage?: Stage
  attempt?: number
}

export interface BatchSummary {
  total: number
  ready: number
  failed: number
  cancelled: number
  deleted: number
  neverUploaded: number
}

/** How many files of a batch are in each state now. */
export type BatchCounts = { batchId: string; total: number; neverUploaded: number; summary: BatchSummary } & Record<FileStatus, number>

export type FileStatusChanged = Event<
  'file:status-changed',
  OfFile & {
    from?: FileStatus
    to: FileStatus
    actor?: { kind: 'user' | 'worker' | 'sweep' | 'administrator' | 'system'; name?: string }
    error?: { code: string; class: string; message: string }
    chunkCount?: number
    reason?: string
    warningCount?: number
    warnings?: Warning[]
  }
>
export type FileProcessingStalled = Event<'file:processing-stalled', OfFile & { retryCount: number }>
export type FileCleanedUp = Event<'file:cleaned-up', OfFile & { reason: string; sizeReclaimed: number }>
export type BatchProgress = Event<'batch:progress', BatchCounts>
export type BatchCompleted = Event<'batch:completed', BatchCounts>
export type BatchExpired = Event<'batch:expired', BatchCounts>
export type BatchCancelled = Event<'batch:cancelled', { batchId: string; summary: BatchSummary }>
export type NotificationCreated = Event<
  'notification:created',
  OfFile & { notificationId: string; type: Notification['type']; fileName: string; message: string }
>
export type RateLimitExceeded = Event<'queue:rate-limit-exceeded', { queue: string; timestamp: string }>
export type CircuitChanged = Event<
  'circuit:changed',
  { service: string; from: CircuitState; to: CircuitState; until?: string | null }
>
export type JobCompleted = Event<
  'job:completed',
  { job: string; runId: string; metrics: Record<string, unknown>; errors: unknown[] }
>
export type AlertRaised = Event<'alert:raised', { alert: string; message: string }>

/** Events may be missing: load the current state. The stream goes on. */
export type StreamGap = Event<'stream:gap', { after: number; resumesAfter: number }>
/** The server was restored from a backup, and events that you saw may be undone: load the current state. The stream goes on. */
export type StreamReset = Event<'stream:reset', { reason: string; after: number; resumesAfter: number }>

/** What happens, by `type`. */
export type LandfallEvent =
  | FileStatusChanged
  | FileProcessingStalled
  | FileCleanedUp
  | BatchProgress
  | BatchCompleted
  | BatchExpired
  | BatchCancelled
  | NotificationCreated
  | RateLimitExceeded
  | CircuitChanged
  | JobCompleted
  | AlertRaised

export type EventType = LandfallEvent['type']
export type StreamEvent = LandfallEvent | StreamGap | StreamReset
