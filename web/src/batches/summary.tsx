/** A batch with its live progress. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { landfall } from '../api/client';
import type { BatchView } from '../api/types';
import { count } from '../app/format';
import { Badge, Gauge, Panel, type Tone } from '../ui/controls';

const TONES: Record<BatchView['status'], Tone> = { active: 'busy', completed: 'good', expired: 'warn', cancelled: 'calm' };

export const BatchBadge = ({ status }: { status: BatchView['status'] }) => <Badge tone={TONES[status]}>{status}</Badge>;

/** What became of the files, in words: `12 of 20 ready, 1 failed`. */
export const outcome = ({ summary }: BatchView): string =>
  [
    `${summary.ready.toLocaleString('en')} of ${count(summary.total, 'file')} ready`,
    summary.failed > 0 && `${summary.failed} failed`,
    summary.cancelled > 0 && `${summary.cancelled} cancelled`,
    summary.deleted > 0 && `${summary.deleted} deleted`,
    summary.neverUploaded > 0 && `${summary.neverUploaded} never uploaded`,
  ]
    .filter(Boolean)
    .join(', ');

export const useBatchQuery = (batchId: string) =>
  useQuery({
    queryKey: ['batches', batchId],
    queryFn: ({ signal }) => landfall.get('/api/v2/uploads/batches/{batchId}', { params: { batchId }, signal }),
    refetchInterval: query => (query.state.data?.status === 'active' ? 5_000 : false),
  });

export const BatchProgress = ({ batch }: { batch: BatchView }) => {
  const { total, ready, failed, cancelled, deleted, neverUploaded } = batch.summary;
  const ended = ready + failed + cancelled + deleted + neverUploaded;
  return (
    <div className="grid gap-1.5">
      <Gauge value={ended} max={total} label={`Batch: ${ended} of ${total} files have ended`} tone={failed > 0 ? 'warn' : 'good'} />
      <p className="text-soft">{outcome(batch)}</p>
    </div>
  );
};

export const BatchSummary = ({ batchId }: { batchId: string }) => {
  const { data: batch } = useBatchQuery(batchId);
  if (!batch) return null;
  return (
    <Panel
      title={
        <>
          Batch of {count(batch.fileCount, 'file')} <BatchBadge status={batch.status} />
        </>
      }
      actions={
        <Link to="/batches/$batchId" params={{ batchId }} className="text-brand underline">
          Details
        </Link>
      }
    >
      <div className="p-4">
        <BatchProgress batch={batch} />
      </div>
    </Panel>
  );
};
