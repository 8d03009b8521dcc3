/** One batch: its progress, its summary, and its files. */
import { Link, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { landfall, queries } from '../api/client';
import type { FileStatus } from '../api/types';
import { Failure } from '../app/failure';
import { count, number } from '../app/format';
import { StatusBadge } from '../files/status';
import { Button, Code, Heading, Loading, Panel } from '../ui/controls';
import { Confirm } from '../ui/dialog';
import { Ago, Countdown } from '../ui/time';
import { BatchBadge, BatchProgress, useBatchQuery } from './summary';

export const BatchScreen = () => {
  const { batchId } = useParams({ from: '/batches/$batchId' });
  const { data: batch, error, isPending, refetch } = useBatchQuery(batchId);
  const [cancelling, setCancelling] = useState(false);
  if (isPending) return <Loading />;
  if (error || !batch)
    return (
      <>
        <Heading title="Batch" />
        <Failure error={error} retry={() => void refetch()} />
      </>
    );
  const cancel = async () => {
    await landfall.post('/api/v2/uploads/batches/{batchId}/cancel', { params: { batchId } });
    await queries.invalidateQueries({ queryKey: ['batches'] });
  };
  const progress = Object.entries(batch.progress ?? {}).filter(([, files]) => files > 0) as [FileStatus, number][];
  return (
    <>
      <Heading
        title={batch.archiveFileId ? `Archive of ${count(batch.fileCount, 'file')}` : `Batch of ${count(batch.fileCount, 'file')}`}
        note={
          <>
            <BatchBadge status={batch.status} /> opened <Ago at={batch.createdAt} />
            {batch.completedAt && (
              <>
                , completed <Ago at={batch.completedAt} />
              </>
            )}
          </>
        }
        actions={
          batch.status === 'active' && (
            <Button look="danger" icon="cancel" onClick={() => setCancelling(true)}>
              Cancel the batch
            </Button>
          )
        }
      />
      <div className="grid gap-4">
        <Panel title="Progress">
          <div className="grid gap-4 p-4">
            <BatchProgress batch={batch} />
            <ul className="flex flex-wrap gap-2">
              {progress.map(([status, files]) => (
                <li key={status}>
                  <Link to="/files" search={{ batchId, status }} className="inline-flex items-center gap-2 rounded-md border border-line px-2.5 py-1.5 hover:bg-sunken">
                    <StatusBadge status={status} /> {number(files)}
                  </Link>
                </li>
              ))}
            </ul>
            <p>
              <Link to="/files" search={{ batchId }} className="text-brand underline">
                Show all its files
              </Link>{' '}
              ·{' '}
              <Link to="/search" search={{ batchId }} className="text-brand underline">
                Search in it
              </Link>
            </p>
          </div>
        </Panel>
        <Panel title="Details">
          <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1.5 p-4">
            <dt className="text-soft">Id</dt>
            <dd>
              <Code>{batch.batchId}</Code>
            </dd>
            {batch.archiveFileId && (
              <>
                <dt className="text-soft">Archive</dt>
                <dd>
                  <Link to="/files/$fileId" params={{ fileId: batch.archiveFileId }} className="text-brand underline">
                    The file that it was unpacked from
                  </Link>
                </dd>
              </>
            )}
            <dt className="text-soft">Registered</dt>
            <dd>
              {number(batch.registered)} of {number(batch.fileCount)}
            </dd>
            <dt className="text-soft">Priority</dt>
            <dd>{batch.priority}</dd>
            {batch.status === 'active' && (
              <>
                <dt className="text-soft">Expires</dt>
                <dd>
                  <Countdown to={batch.expiresAt} />
                </dd>
              </>
            )}
            {batch.metadata && (
              <>
                <dt className="text-soft">Metadata</dt>
                <dd>
                  <pre className="overflow-x-auto font-mono text-xs">{JSON.stringify(batch.metadata, null, 2)}</pre>
                </dd>
              </>
            )}
          </dl>
        </Panel>
      </div>
      <Confirm open={cancelling} onOpenChange={setCancelling} title="Cancel this batch?" action="Cancel the batch" onConfirm={cancel}>
        Files that wait or are being processed are cancelled. Files that are ready stay. A cancelled file can be retried.
      </Confirm>
    </>
  );
};
