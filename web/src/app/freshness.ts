/** Which answers of the server an event makes old. Many events at once ask for each answer once. */
import type { StreamEvent } from '@landfall/client';
import { queries } from '../api/client';
import { onEvent } from './live';

const GATHER_MS = 400;
let pending = new Set<string>();
let pendingFiles = new Set<string>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** The first part of the key of each query, by what it tells of. */
const TOUCHED: Record<string, readonly string[]> = {
  'file:status-changed': ['files', 'counts', 'dashboard', 'groups', 'blockers', 'quota', 'batches'],
  'file:processing-stalled': ['files', 'blockers', 'stuck'],
  'file:cleaned-up': ['files', 'counts', 'quota'],
  'batch:progress': ['batches'],
  'batch:completed': ['batches'],
  'batch:expired': ['batches'],
  'batch:cancelled': ['batches'],
  'notification:created': ['notifications'],
  'queue:rate-limit-exceeded': ['blockers', 'queue-status'],
  'circuit:changed': ['blockers', 'queue-status', 'dashboard', 'files'],
  'job:completed': ['jobs', 'runs', 'orphans', 'cleanup-failures', 'dashboard'],
  'alert:raised': ['dashboard'],
};

const flush = () => {
  timer = undefined;
  const [kinds, files] = [pending, pendingFiles];
  [pending, pendingFiles] = [new Set(), new Set()];
  void queries.invalidateQueries({
    predicate: ({ queryKey: [kind, id] }) =>
      kinds.has(String(kind)) || (String(kind) === 'file' && files.has(String(id))),
  });
};

const take = (event: StreamEvent) => {
  if (event.type === 'stream:gap' || event.type === 'stream:reset') {
    // Events were missed: everything may have changed.
    void queries.invalidateQueries();
    return;
  }
  for (const kind of TOUCHED[event.type] ?? []) pending.add(kind);
  const data = ('data' in event ? event.data : {}) as { fileId?: string };
  if (data.fileId) pendingFiles.add(data.fileId);
  // Many queries at a high rate would keep the server busy with one tab: the gaps grow with the load.
  timer ??= setTimeout(flush, document.hidden ? GATHER_MS * 10 : GATHER_MS);
};

export const beginFreshness = () => onEvent(take);
