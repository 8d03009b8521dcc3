/** The runs of a job. They are asked for when somebody opens them. */
import { useState } from 'react';
import { landfall } from '../api/client';
import type { JobRun } from '../api/reports';
import { bytes, duration, number } from '../app/format';
import { Answer, More, usePages } from '../ui/answer';
import { Badge, Prose, type Tone } from '../ui/controls';
import { Table, type Column } from '../ui/table';
import { Ago } from '../ui/time';

/** `orphanBlobs` as `orphan blobs`. */
const inWords = (name: string) => name.replace(/[_-]/g, ' ').replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase();

const amount = (name: string, value: number) => (/size|bytes/i.test(name) ? bytes(value) : number(value));

export const Metrics = ({ metrics }: { metrics: Record<string, unknown> }) => {
  const shown = Object.entries(metrics).filter(([, value]) => typeof value === 'number' || typeof value === 'string' || typeof value === 'boolean');
  // How long it took is shown beside it.
  const useful = shown.filter(([name, value]) => value !== 0 && name !== 'executionTime');
  if (shown.length === 0) return <>–</>;
  if (useful.length === 0) return <>nothing to do</>;
  return <>{useful.map(([name, value]) => `${inWords(name)} ${typeof value === 'number' ? amount(name, value) : String(value)}`).join(', ')}</>;
};

const OUTCOMES: Record<JobRun['outcome'], { label: string; tone: Tone }> = {
  completed: { label: 'Done', tone: 'good' },
  failed: { label: 'Failed', tone: 'bad' },
  running: { label: 'Running', tone: 'busy' },
  interrupted: { label: 'Interrupted', tone: 'warn' },
};

const COLUMNS: readonly Column<JobRun>[] = [
  { head: 'Started', cell: run => <Ago at={run.startedAt} /> },
  { head: 'Outcome', cell: run => <Badge tone={OUTCOMES[run.outcome].tone}>{OUTCOMES[run.outcome].label}</Badge> },
  { head: 'Took', cell: run => (run.endedAt ? duration(Date.parse(run.endedAt) - Date.parse(run.startedAt)) : '–') },
  { head: 'By', cell: run => run.startedBy ?? 'the schedule' },
  { head: 'Result', cell: run => (run.metrics ? <Metrics metrics={run.metrics} /> : '–') },
];

export const Runs = ({ name }: { name: string }) => {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={event => setOpen(event.currentTarget.open)}>
      <summary className="w-fit cursor-pointer py-0.5 text-brand">
        Earlier runs<span className="sr-only"> of {name}</span>
      </summary>
      {open && <RunList name={name} />}
    </details>
  );
};

const RunList = ({ name }: { name: string }) => {
  const query = usePages(['runs', name], (cursor, signal) => landfall.get('/api/v2/admin/jobs/{jobName}/runs', { params: { jobName: name }, query: { limit: 10, cursor }, signal }));
  return (
    <div className="mt-2 rounded-md border border-line">
      <Answer query={query}>
        {({ pages }) => {
          const runs = pages.flatMap(page => page.runs);
          if (runs.length === 0) return <p className="px-4 py-3 text-soft">It has not run in the last 30 days.</p>;
          return (
            <>
              <Table
                label={`Runs of ${name}`}
                columns={COLUMNS}
                rows={runs}
                keyOf={run => run.runId}
                below={run =>
                  run.errors.length > 0 && (
                    <ul className="text-bad">
                      {run.errors.map((error, index) => (
                        <li key={index} className="break-words">
                          <Prose text={error} />
                        </li>
                      ))}
                    </ul>
                  )
                }
              />
              <More query={query} what="runs" />
            </>
          );
        }}
      </Answer>
    </div>
  );
};
