import { landfall } from '../api/client';
import type { Scope } from '../api/types';

/** As many as one press discards. More are there after the next look. */
export const MOST_DISCARDED = 10_000;
const PAGE = 200;
const PER_OPERATION = 1_000;

/**
 * Deletes the failed files of one cause. A filter of files does not know causes, so they are named by their ids. `begun` hears of
 * each operation, which goes on at the server.
 */
export const discardGroup = async (fingerprint: string, scope: Scope, begun: (operationId: string) => void) => {
  let cursor: string | undefined;
  let total = 0;
  do {
    const fileIds: string[] = [];
    do {
      const page = await landfall.get('/api/v2/uploads/dlq', { query: { fingerprint, scope, limit: PAGE, cursor } });
      fileIds.push(...page.entries.map(entry => entry.fileId));
      cursor = page.nextCursor ?? undefined;
    } while (cursor && fileIds.length < PER_OPERATION);
    if (fileIds.length === 0) break;
    const operation = await landfall.post('/api/v2/uploads/operations', { body: { action: 'delete', fileIds }, idempotencyKey: crypto.randomUUID() });
    begun(operation.operationId);
    total += fileIds.length;
  } while (cursor && total < MOST_DISCARDED);
};
