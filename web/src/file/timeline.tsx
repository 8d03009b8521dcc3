/** The way of a file: every step, how long it took, which worker, which error, who retried. */
import { useInfiniteQuery } from '@tanstack/react-query';
import { landfall } from '../api/client';
import { hasEnded, type FileView, type HistoryEntry } from '../api/types';
import { Failure } from '../app/failure';
import { duration, exact } from '../app/format';
import { StatusBadge } from '../files/status';
import { Button, Code, Empty, Loading, Panel, join } from '../ui/controls';
import { Ago, Since } from '../ui/time';

const DOTS: Record<string, string> = { ready: 'bg-good', failed: 'bg-bad', cancelled: 'bg-soft', deleted: 'bg-soft' };

export const Timeline = ({ file }: { file: FileView }) => {
  const history = useInfiniteQuery({
    queryKey: ['file', file.fileId, 'history'],
    queryFn: ({ pageParam, signal }) =>
      landfall.get('/api/v2/uploads/files/{fileId}/history', { params: { fileId: file.fileId }, query: { limit: 200, ...(pageParam ? { cursor: pageParam } : {}) }, signal }),
    initialPageParam: '',
    getNextPageParam: page => page.nextCursor ?? undefined,
  });
  const steps = history.data?.pages.flatMap(page => page.history) ?? [];
  return (
    <Panel title="Timeline">
      {history.isPending ? (
        <Loading />
      ) : history.isError ? (
        <Failure error={history.error} retry={() => void history.refetch()} />
      ) : steps.length === 0 ? (
        <Empty title="No steps are recorded" />
      ) : (
        <ol className="px-4 py-3">
          {steps.map((step, index) => (
            <Step key={step.id} step={step} next={steps[index + 1]} isLast={index === steps.length - 1 && !history.hasNextPage} file={file} />
          ))}
        </ol>
      )}
      {history.hasNextPage && (
        <div className="border-t border-line p-3">
          <Button busy={history.isFetchingNextPage} onClick={() => void history.fetchNextPage()}>
            Show later steps
          </Button>
        </div>
      )}
    </Panel>
  );
};

const Step = ({ step, next, isLast, file }: { step: HistoryEntry; next: HistoryEntry | undefined; isLast: boolean; file: FileView }) => {
  const lasted = next ? Date.parse(next.at) - Date.parse(step.at) : null;
  const isOver = step.to !== null && hasEnded(step.to);
  return (
    <li className="relative grid grid-cols-[0.75rem_minmax(0,1fr)] gap-3 pb-4 last:pb-0">
      {!isLast && <span aria-hidden="true" className="absolute top-3 bottom-0 left-[0.3125rem] w-px bg-line" />}
      <span aria-hidden="true" className={join('relative mt-1.5 size-2.5 rounded-full ring-3 ring-panel', DOTS[step.to ?? ''] ?? 'bg-busy')} />
      <div className="min-w-0">
        <div className="flex flex-wrap items-baseline gap-x-2 gap-y-0.5">
          {step.to && <StatusBadge status={step.to} />}
          {step.stage && step.attempt !== null && step.attempt > 0 && (
            <span>
              {step.stage}, attempt {step.attempt}
            </span>
          )}
          <span className="ml-auto text-soft" title={exact(step.at)}>
            <Ago at={step.at} />
          </span>
        </div>
        {step.reason && <p className="break-words">{step.reason}</p>}
        {step.errorMessage && (
          <p className="break-words text-bad">
            {step.errorMessage} {step.errorCode && <Code>{step.errorCode}</Code>}
          </p>
        )}
        <p className="text-xs text-soft">
          {[step.actor && who(step.actor), step.worker && step.actor?.name !== step.worker && `worker ${step.worker}`].filter(Boolean).join(' · ')}
          {lasted !== null && !isOver && ` · took ${duration(lasted)}`}
          {isLast && !isOver && file.inflight && (
            <>
              {' '}
              · running for <Since at={step.at} />
            </>
          )}
        </p>
      </div>
    </li>
  );
};

const KINDS: Record<string, string> = { user: 'by', administrator: 'by the administrator', worker: 'worker', sweep: 'job', system: 'by' };

const who = (actor: NonNullable<HistoryEntry['actor']>) => `${KINDS[actor.kind] ?? actor.kind} ${actor.name}`;
