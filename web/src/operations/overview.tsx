/** How it goes: the numbers of a day, and for operators the hours, the workers, the stages and the services. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { landfall } from '../api/client';
import type { Dashboard } from '../api/reports';
import { STATES } from '../api/types';
import { count, duration, number, percent, span } from '../app/format';
import { useScope } from '../app/scope';
import { useSession } from '../app/session';
import { Answer } from '../ui/answer';
import { Code, Heading, Panel } from '../ui/controls';
import { Table, Tile, Tiles, type Column } from '../ui/table';
import { Ago } from '../ui/time';
import { Hours } from './hours';
import { Circuits } from './machinery';

const REFRESH_MS = 15_000;

export const OverviewScreen = () => {
  const scope = useScope();
  const { role } = useSession();
  const query = useQuery({
    queryKey: ['dashboard', scope],
    queryFn: ({ signal }) => landfall.get('/api/v2/uploads/dashboard', { query: { scope }, signal }),
    refetchInterval: REFRESH_MS,
  });
  return (
    <>
      <Heading title="Overview" note={NOTES[scope]} />
      <Answer query={query}>
        {dashboard => (
          <div className="grid grid-cols-1 gap-4">
            <Numbers dashboard={dashboard} />
            {role === 'operator' && <Hours />}
            <States dashboard={dashboard} />
            {role !== 'operator' && <Circuits circuits={dashboard.circuits} />}
            <RecentErrors dashboard={dashboard} />
          </div>
        )}
      </Answer>
    </>
  );
};

const NOTES = { own: 'Your own files.', tenant: 'The files of your tenant.', all: 'The files of all tenants.' } as const;

const Numbers = ({ dashboard: { metrics, queueDepths, oldestWaitingMs, dlqDepth, stuckFiles, activeBatches } }: { dashboard: Dashboard }) => {
  const waiting = Object.values(queueDepths).reduce((sum, depth) => sum + depth, 0);
  return (
    <Tiles>
      <Tile name="Ready in 24 hours" value={number(metrics.throughput24h)} note={metrics.throughput24h > 0 && `${duration(metrics.averageProcessingTime)} each, with the wait`} />
      <Tile name="Failed in 24 hours" value={percent(metrics.failureRate24h)} note="of the files that ended" tone={metrics.failureRate24h >= 20 ? 'bad' : undefined} />
      <Tile name="In the queue" value={number(waiting)} note={oldestWaitingMs > 0 ? `the oldest for ${span(oldestWaitingMs)}` : 'none waits for a worker'} />
      <Tile
        name="Stuck"
        value={number(stuckFiles)}
        tone={stuckFiles > 0 ? 'bad' : undefined}
        note={
          <Link to="/waiting" className="text-brand underline">
            Why does it not move?
          </Link>
        }
      />
      <Tile
        name="Failed files that are kept"
        value={number(dlqDepth)}
        tone={dlqDepth > 0 ? 'warn' : undefined}
        note={
          <Link to="/failures" className="text-brand underline">
            Failures by cause
          </Link>
        }
      />
      <Tile
        name="Active batches"
        value={number(activeBatches)}
        note={
          <Link to="/batches" className="text-brand underline">
            Batches
          </Link>
        }
      />
    </Tiles>
  );
};

const States = ({ dashboard: { statusDistribution } }: { dashboard: Dashboard }) => {
  const total = Object.values(statusDistribution).reduce((sum, value) => sum + value, 0);
  const shown = STATES.filter(state => (statusDistribution[state] ?? 0) > 0);
  return (
    <Panel title="Files by state">
      {shown.length === 0 ? (
        <p className="px-4 py-3 text-soft">There are no files.</p>
      ) : (
        <ul className="grid gap-2 px-4 py-3">
          {shown.map(state => {
            const files = statusDistribution[state] ?? 0;
            return (
              <li key={state} className="grid grid-cols-[6rem_minmax(0,1fr)_max-content] items-center gap-3">
                <Link to="/files" search={{ status: state }} className="text-brand underline">
                  {state}
                </Link>
                <div aria-hidden="true" className="h-1.5 overflow-hidden rounded-full bg-sunken">
                  <div data-bar className={`h-full rounded-full ${state === 'ready' ? 'bg-good' : state === 'failed' ? 'bg-bad' : 'bg-brand'}`} style={{ width: `${Math.max(1, (files / total) * 100)}%` }} />
                </div>
                <span className="text-right tabular-nums">{number(files)}</span>
              </li>
            );
          })}
        </ul>
      )}
    </Panel>
  );
};

type RecentError = Dashboard['recentErrors'][number];

const ERRORS: readonly Column<RecentError>[] = [
  {
    head: 'File',
    bare: true,
    cell: error => (
      <>
        <Link to="/files/$fileId" params={{ fileId: error.fileId }} className="wrap-anywhere text-brand underline">
          {error.fileName}
        </Link>
        <p className="line-clamp-2 text-soft">{error.error}</p>
      </>
    ),
  },
  { head: 'Code', className: 'sm:whitespace-nowrap', cell: error => <Code>{error.code}</Code> },
  { head: 'When', cell: error => <Ago at={error.timestamp} /> },
];

const RecentErrors = ({ dashboard: { recentErrors } }: { dashboard: Dashboard }) => (
  <Panel title="The last failures" actions={recentErrors.length > 0 && <span className="text-soft">{count(recentErrors.length, 'file')}</span>}>
    {recentErrors.length === 0 ? <p className="px-4 py-3 text-soft">No file has failed.</p> : <Table label="The last failures" columns={ERRORS} rows={recentErrors} keyOf={error => error.fileId} />}
  </Panel>
);
