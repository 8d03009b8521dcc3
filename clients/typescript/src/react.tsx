'use client'

import {
  createContext,
  createElement,
  useCallback,
  useContext,
  useEffect,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
  type ReactNode,
} from 'react'
import { NotFoundError } from './errors.js'
import type { BatchCounts, BatchSummary, FileProcessingStalled, FileStatusChanged, StreamEvent } from './event-types.js'
import type { Listener } from './hub.js'
import { Landfall, type LandfallOptions } from './landfall.js'
import type { BatchView, FileStatus, FileView } from './routes.js'
import type { UploadInput } from './sources.js'
import type { Upload, UploadOptions, UploadProgress } from './upload.js'

type Scope = 'own' | 'tenant' | 'all'

const Context = createContext<{ landfall: Landfall; scope: Scope } | null>(null)

export interface LandfallProviderProps {
  /** The client. Without it one is made from `options` when the provider is mounted. */
  client?: Landfall | undefined
  options?: LandfallOptions | undefined
  /** Whose events the hooks see: `tenant` and `all` are for administrators. */
  scope?: Scope | undefined
  children?: ReactNode | undefined
}

/** Gives the hooks their client. They share one stream of events, which is open while one of them needs it. */
export function LandfallProvider({ client, options, scope = 'own', children }: LandfallProviderProps): ReactNode {
  const [own] = useState(() => client ?? new Landfall(options))
  const landfall = client ?? own
  const value = useMemo(() => ({ landfall, scope }), [landfall, scope])
  return createElement(Context.Provider, { value }, children)
}

function useProvided(): { landfall: Landfall; scope: Scope } {
  const provided = useContext(Context)
  if (!provided) throw new Error('This hook needs a <LandfallProvider> around the component')
  return provided
}

export function useLandfall(): Landfall {
  return useProvided().landfall
}

/** The latest value, for functions that are called later. */
function useLatest<T>(value: T): { readonly current: T } {
  const latest = useRef(value)
  useEffect(() => {
    latest.current = value
  })
  return latest
}

/** Listens to the events that the hooks share. The functions may be new ones at each rendering. */
export function useLandfallEvents(callbacks: Listener): void {
  const { landfall, scope } = useProvided()
  const latest = useLatest(callbacks)
  useEffect(
    () =>
      landfall.sharedEvents(scope).subscribe({
        onEvent: (event) => latest.current.onEvent?.(event),
        onSync: () => latest.current.onSync?.(),
        onError: (error) => latest.current.onError?.(error),
      }),
    [landfall, scope, latest],
  )
}

/** What a hook that reads something returns. `data` stays while it is read again. */
export interface Loaded<T> {
  data: T | undefined
  error: unknown
  isLoading: boolean
  reload: () => void
}

/** Reads a state when the stream of events is open, and again whenever an event says that it changed. */
function useLive<T>(key: string | undefined, read: (key: string, signal: AbortSignal) => Promise<T>, concerns: (event: StreamEvent, key: string) => boolean): Loaded<T> {
  const { landfall, scope } = useProvided()
  const latest = useLatest({ read, concerns })
  const [state, setState] = useState<{ key: string | undefined; data?: T; error?: unknown; isLoading: boolean }>({ key, isLoading: key !== undefined })
  const start = useRef<() => void>(() => {})
  const [round, setRound] = useState(0)

  useEffect(() => {
    if (key === undefined) return
    const controller = new AbortController()
    let isReading = false
    let isDue = false
    const load = async () => {
      // Events that come while the state is read cause one more reading, however many they are.
      isDue = true
      if (isReading) return
      isReading = true
      while (isDue && !controller.signal.aborted) {
        isDue = false
        try {
          const data = await latest.current.read(key, controller.signal)
          if (!controller.signal.aborted) setState({ key, data, isLoading: false })
        } catch (error) {
          if (controller.signal.aborted) break
          // What was deleted is not shown any more; what cannot be read at the moment is.
          const isGone = error instanceof NotFoundError
          setState((before) => ({ key, data: before.key === key && !isGone ? before.data : undefined, error, isLoading: false }))
        }
      }
      isReading = false
    }
    start.current = () => void load()
    const fail = (error: unknown) => {
      // The stream has ended for good, so that reading alone would not be enough: listen again.
      start.current = () => setRound((round) => round + 1)
      setState((before) => ({ ...before, key, error, isLoading: false }))
    }
    const unsubscribe = landfall.sharedEvents(scope).subscribe({
      onSync: () => void load(),
      onEvent: (event) => latest.current.concerns(event, key) && void load(),
      onError: fail,
    })
    return () => {
      controller.abort()
      unsubscribe()
    }
  }, [landfall, scope, key, latest, round])

  const reload = useCallback(() => start.current(), [])
  const isCurrent = state.key === key
  return {
    data: isCurrent ? state.data : undefined,
    error: isCurrent ? state.error : undefined,
    isLoading: isCurrent ? state.isLoading : key !== undefined,
    reload,
  }
}

/** A file, always as it is now. */
export function useFile(fileId: string | undefined): Loaded<FileView> & { file: FileView | undefined } {
  const { landfall } = useProvided()
  const loaded = useLive(
    fileId,
    (fileId, signal) => landfall.get('/api/v2/uploads/files/{fileId}', { params: { fileId }, signal }),
    (event, fileId) => event.type.startsWith('file:') && (event as FileStatusChanged).data.fileId === fileId,
  )
  return { ...loaded, file: loaded.data }
}

/** A batch, always as it is now. */
export function useBatch(batchId: string | undefined): Loaded<BatchView> & { batch: BatchView | undefined } {
  const { landfall } = useProvided()
  const loaded = useLive(
    batchId,
    (batchId, signal) => landfall.get('/api/v2/uploads/batches/{batchId}', { params: { batchId }, signal }),
    (event, batchId) => event.type.startsWith('batch:') && (event as { data: { batchId?: string } }).data.batchId === batchId,
  )
  return { ...loaded, batch: loaded.data }
}

export interface ProcessingCallbacks {
  /** Every file of the batch has come to its end. Called once, also if that happened before the component was there. */
  onCompleted?: (summary: BatchSummary) => void
  /** A worker was lost; the file continues by itself. */
  onStalled?: (event: FileProcessingStalled) => void
  onFileChanged?: (event: FileStatusChanged) => void
}

export interface ProcessingEvents {
  /** How many files are in each state. Null until that is known. */
  progress: BatchCounts | null
  /** The state of each file that is known. */
  statuses: Readonly<Record<string, FileStatus>>
  isCompleted: boolean
  error: unknown
}

/** More files of a batch are not listed: the counts in `progress` have all of them. */
const LISTED = 1000

/** How a batch is processed: the counts, the state of each file, and what happens. */
export function useFileProcessingEvents(batchId: string | undefined, callbacks: ProcessingCallbacks = {}): ProcessingEvents {
  const { landfall, scope } = useProvided()
  const latest = useLatest(callbacks)
  const [state, setState] = useState<ProcessingEvents & { batchId: string | undefined }>({ ...NOTHING, batchId })

  useEffect(() => {
    if (batchId === undefined) return
    const controller = new AbortController()
    const { signal } = controller
    /** When the batch became complete, as far as that was reported. A retry of a file can make it complete once more. */
    let completedAt = 0
    const change = (make: (before: ProcessingEvents) => Partial<ProcessingEvents>) => {
      if (signal.aborted) return
      setState((state) => {
        const before = state.batchId === batchId ? state : { ...NOTHING, batchId }
        return { ...before, ...make(before) }
      })
    }
    const complete = (at: string | null, summary: BatchSummary) => {
      const time = Date.parse(at ?? '')
      if (signal.aborted || time <= completedAt) return
      completedAt = time
      latest.current.onCompleted?.(summary)
    }
    /** What events said while the state was read is newer than what was read. */
    let newer: Record<string, FileStatus> = {}

    const load = async () => {
      newer = {}
      try {
        const batch = await landfall.get('/api/v2/uploads/batches/{batchId}', { params: { batchId }, signal })
        const statuses: Record<string, FileStatus> = {}
        for await (const file of landfall.files({ batchId, scope, signal })) {
          statuses[file.fileId] = file.status
          if (Object.keys(statuses).length >= LISTED) break
        }
        const isCompleted = batch.status === 'completed'
        change(() => ({ progress: counts(batch), statuses: { ...statuses, ...newer }, isCompleted, error: undefined }))
        if (isCompleted) complete(batch.completedAt, batch.summary)
      } catch (error) {
        change(() => ({ error }))
      }
    }

    const onEvent = (event: StreamEvent) => {
      if (!('batchId' in event.data) || event.data.batchId !== batchId) return
      switch (event.type) {
        case 'file:status-changed': {
          const { fileId, to } = event.data
          newer[fileId] = to
          change((before) => ({ statuses: { ...before.statuses, [fileId]: to } }))
          latest.current.onFileChanged?.(event)
          break
        }
        case 'file:processing-stalled':
          latest.current.onStalled?.(event)
          break
        case 'batch:progress':
          // What happened before a completion that was read already is old.
          if (Date.parse(event.at) <= completedAt) break
          change(() => ({ progress: event.data, isCompleted: false }))
          break
        case 'batch:completed':
          change(() => ({ progress: event.data, isCompleted: true }))
          complete(event.at, event.data.summary)
          break
        case 'batch:expired':
          change(() => ({ progress: event.data }))
          break
      }
    }

    const unsubscribe = landfall.sharedEvents(scope).subscribe({
      onEvent,
      onSync: () => void load(),
      onError: (error) => change(() => ({ error })),
    })
    return () => {
      controller.abort()
      unsubscribe()
    }
  }, [landfall, scope, batchId, latest])

  return state.batchId === batchId ? state : NOTHING
}

const NOTHING: ProcessingEvents = { progress: null, statuses: {}, isCompleted: false, error: undefined }

function counts(batch: BatchView): BatchCounts {
  const { batchId, summary, progress = {} } = batch
  return { batchId, total: batch.fileCount, neverUploaded: summary.neverUploaded, summary, ...progress } as BatchCounts
}

export interface UploadControl {
  /** Begins to send a file. Another upload of the same hook goes on by itself. */
  start: (file: UploadInput, options?: UploadOptions) => Upload
  upload: Upload | undefined
  progress: UploadProgress | undefined
  fileId: string | undefined
  pause: () => void
  resume: () => void
  abort: () => Promise<void>
}

/** Sends a file and shows how far it is. The upload goes on if the component goes away; `abort` ends it. */
export function useUpload(defaults?: UploadOptions): UploadControl {
  const landfall = useLandfall()
  const latest = useLatest(defaults)
  const [upload, setUpload] = useState<Upload>()
  const subscribe = useCallback((onChange: () => void) => upload?.on('progress', onChange) ?? (() => {}), [upload])
  const progress = useSyncExternalStore(subscribe, () => upload?.progress, () => undefined)

  const start = useCallback(
    (file: UploadInput, options?: UploadOptions) => {
      const started = landfall.upload(file, { ...latest.current, ...options })
      setUpload(started)
      return started
    },
    [landfall, latest],
  )
  return {
    start,
    upload,
    progress,
    fileId: upload?.fileId,
    pause: useCallback(() => upload?.pause(), [upload]),
    resume: useCallback(() => upload?.resume(), [upload]),
    abort: useCallback(async () => upload?.abort(), [upload]),
  }
}
