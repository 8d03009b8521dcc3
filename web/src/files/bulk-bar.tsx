/** Actions on the files that are selected, or on all that match the filter: each is an operation with progress and Stop. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { landfall, queries } from '../api/client';
import { randomKey } from '../app/ids';
import type { Action, Operation } from '../api/reports';
import type { Scope } from '../api/types';
import { OperationBox } from '../bulk/operation';
import { isRunning } from '../bulk/words';
import type { FileFilter } from '../app/router';
import { count, number } from '../app/format';
import { Button, IconButton } from '../ui/controls';
import { Confirm } from '../ui/dialog';
import { ArchiveDownload } from './archive';
import { inWords, queryOf } from './filter';

export type Selection = { kind: 'some'; ids: ReadonlySet<string> } | { kind: 'all' };

const MAX_IDS = 1000;
const WORDS: Record<Action, { verb: string; note: string; danger: boolean }> = {
  retry: { verb: 'Retry', note: 'Files that did not fail and were not cancelled are left alone.', danger: false },
  cancel: { verb: 'Cancel', note: 'Files that have ended are left alone. A cancelled file can be retried.', danger: true },
  delete: { verb: 'Delete', note: 'The files, their text and their search entries are deleted. This cannot be undone.', danger: true },
};

export const BulkBar = ({
  selection,
  matching,
  filter,
  scope,
  onSelectAll,
  onClear,
}: {
  selection: Selection;
  /** How many files match the filter; null while it is not known. */
  matching: { total: number; isCapped: boolean } | null;
  filter: FileFilter;
  scope: Scope;
  onSelectAll: () => void;
  onClear: () => void;
}) => {
  const [asked, setAsked] = useState<Action | null>(null);
  const [operationId, setOperationId] = useState<string | null>(null);
  const [archive, setArchive] = useState(false);
  const chosen = selection.kind === 'all' ? (matching?.total ?? 0) : selection.ids.size;
  if (chosen === 0 && !operationId && !archive) return null;
  const target = selection.kind === 'all' ? { filter: queryOf(filter, scope) } : { fileIds: [...selection.ids].slice(0, MAX_IDS) };
  const amount = selection.kind === 'all' && matching?.isCapped ? `more than ${number(chosen)} files` : count(chosen, 'file');

  const start = async (action: Action) => {
    const operation = await landfall.post('/api/v2/uploads/operations', { body: { action, ...target }, idempotencyKey: randomKey() });
    setOperationId(operation.operationId);
    onClear();
    void queries.invalidateQueries({ queryKey: ['operations'] });
  };

  return (
    <div role="region" aria-label="Selected files" className="mb-3 grid gap-2">
      {chosen > 0 && (
        <div className="flex flex-wrap items-center gap-2 rounded-md border border-brand bg-brand-wash px-3 py-1.5">
          <span role="status" className="font-medium">
            {amount} selected
          </span>
          {selection.kind === 'some' && matching && matching.total > chosen && (
            <Button look="quiet" className="text-brand underline" onClick={onSelectAll}>
              Select all {number(matching.total)}
              {matching.isCapped && '+'} that match
            </Button>
          )}
          <span className="flex-1" />
          <Button icon="retry" onClick={() => setAsked('retry')}>
            Retry
          </Button>
          <Button icon="cancel" onClick={() => setAsked('cancel')}>
            Cancel
          </Button>
          <Button icon="download" onClick={() => setArchive(true)}>
            Download
          </Button>
          <Button look="danger" icon="delete" onClick={() => setAsked('delete')}>
            Delete
          </Button>
          <IconButton icon="close" label="Clear the selection" onClick={onClear} />
        </div>
      )}
      {operationId && <Started operationId={operationId} onClose={() => setOperationId(null)} />}
      {archive && (
        <ArchiveDownload
          query={selection.kind === 'all' ? queryOf(filter, scope) : { fileIds: [...selection.ids].slice(0, MAX_IDS).join(',') }}
          onClose={() => setArchive(false)}
        />
      )}
      {asked && (
        <Confirm
          open
          onOpenChange={open => !open && setAsked(null)}
          title={`${WORDS[asked].verb} ${amount}?`}
          action={`${WORDS[asked].verb} ${amount}`}
          danger={WORDS[asked].danger}
          onConfirm={() => start(asked)}
        >
          {selection.kind === 'all' && `All ${inWords(filter, scope)}. `}
          {WORDS[asked].note}
        </Confirm>
      )}
    </div>
  );
};

/** The operation that was started here, until the person dismisses it. */
const Started = ({ operationId, onClose }: { operationId: string; onClose: () => void }) => {
  const { data: operation } = useQuery({
    queryKey: ['operations', operationId],
    queryFn: ({ signal }) => landfall.get('/api/v2/uploads/operations/{operationId}', { params: { operationId }, signal }) as Promise<Operation>,
    refetchInterval: query => (query.state.data && !isRunning(query.state.data) ? false : 1_000),
  });
  if (!operation) return null;
  return (
    <div className="flex items-start gap-2">
      <div className="min-w-0 flex-1">
        <OperationBox operation={operation} />
      </div>
      <Link to="/bulk" className="inline-flex items-center py-2 text-brand underline">
        Details
      </Link>
      {!isRunning(operation) && <IconButton icon="close" label="Dismiss" onClick={onClose} />}
    </div>
  );
};
