/** The maintenance jobs: when each ran and will run, what it did, and a way to run one now. */
import { useQuery } from '@tanstack/react-query';
import { landfall } from '../api/client';
import type { Job } from '../api/reports';
import { Answer } from '../ui/answer';
import { ActionButton, ConfirmButton } from '../ui/action';
import { Badge, Code, Heading, Prose, Spinner } from '../ui/controls';
import { Only } from '../ui/only';
import { Facts } from '../ui/table';
import { Ago } from '../ui/time';
import { CleanupFailures } from './cleanup';
import { Metrics, Runs } from './runs';

const PURPOSES: Record<string, string> = {
  'stuck-file-recovery': 'Finds files that no worker has and none will take, and puts them into the queue again.',
  'upload-expiry': 'Ends uploads that were not confirmed in time: whole ones are adopted, others are deleted.',
  'batch-timeout': 'Ends batches whose files never came.',
  'orphan-cleanup': 'Removes bytes without a file, and old failures.',
  retention: 'Removes records whose time is over: tombstones, events, runs, operations.',
  'blob-scrub': 'Reads stored bytes again, and marks files whose bytes are damaged.',
};

const FAST_MS = 2_000;

export const JobsScreen = () => (
  <Only role="operator" title="Maintenance jobs">
    <Jobs />
  </Only>
);

const Jobs = () => {
  const query = useQuery({
    queryKey: ['jobs'],
    queryFn: ({ signal }) => landfall.get('/api/v2/admin/jobs', { signal }),
    refetchInterval: ({ state }) => (state.data?.jobs.some(job => job.running) ? FAST_MS : 30_000),
  });
  return (
    <>
      <Heading title="Maintenance jobs" note="They run by themselves. You can also run one now." />
      <Answer query={query}>
        {({ jobs }) => (
          <div className="grid grid-cols-1 gap-4">
            {jobs.map(job => (
              <JobPanel key={job.name} job={job} />
            ))}
            <CleanupFailures />
          </div>
        )}
      </Answer>
    </>
  );
};

/** A job that found more than usual does nothing, and says how an operator can allow it. */
const wantsForce = (job: Job) => !job.running && (job.lastRun?.errors.some(error => error.includes('--force')) ?? false);

const JobPanel = ({ job }: { job: Job }) => {
  const run = (force: boolean) => async () => {
    const result = await landfall.post('/api/v2/admin/jobs/{jobName}/run', { params: { jobName: job.name }, query: force ? { force } : {} });
    const errors = result.run?.errors.length ?? 0;
    if (errors > 0) throw new Error(`${job.name} ran, and had errors: ${result.run?.errors[0]}`);
  };
  const refresh = ['jobs', 'runs', 'orphans', 'cleanup-failures'];
  const last = job.lastRun;
  return (
    <section aria-labelledby={`job-${job.name}`} className="rounded-lg border border-line bg-panel">
      <div className="flex flex-wrap items-start justify-between gap-3 px-4 pt-3">
        <div className="min-w-0 flex-1 basis-64">
          <h2 id={`job-${job.name}`} className="flex flex-wrap items-center gap-2 text-[15px] font-semibold">
            {job.name}
            {job.running ? (
              <Badge tone="busy">
                <Spinner /> Running
              </Badge>
            ) : !last ? (
              <Badge>Has not run</Badge>
            ) : last.errors.length > 0 ? (
              <Badge tone="warn">Had errors</Badge>
            ) : (
              <Badge tone="good">Done</Badge>
            )}
          </h2>
          {PURPOSES[job.name] && <p className="text-soft">{PURPOSES[job.name]}</p>}
        </div>
        <div className="flex flex-wrap gap-2">
          {wantsForce(job) && (
            <ConfirmButton
              look="danger"
              aria-label={`Run by force: ${job.name}`}
              title={`Run ${job.name} by force?`}
              question={
                <>
                  <Prose text={last?.errors.find(error => error.includes('--force')) ?? ''} />. By force it removes all of them. This cannot be undone.
                </>
              }
              action="Run by force"
              run={run(true)}
              done={`${job.name} ran.`}
              refresh={refresh}
            >
              Run by force
            </ConfirmButton>
          )}
          <ActionButton icon="play" aria-label={`Run now: ${job.name}`} disabled={job.running} run={run(false)} done={`${job.name} was started.`} refresh={refresh}>
            Run now
          </ActionButton>
        </div>
      </div>
      <div className="grid gap-3 px-4 py-3">
        <Facts
          facts={[
            ['Schedule', job.schedule && <Code key="schedule">{job.schedule}</Code>],
            ['Next run', job.nextRunAt && <Ago at={job.nextRunAt} />],
            [
              job.running ? 'Started' : 'Last run',
              last && (
                <span key="last">
                  <Ago at={last.startedAt} /> {last.startedBy ? `by ${last.startedBy}` : 'by the schedule'}, on {last.worker}
                </span>
              ),
            ],
            ['Result', last?.metrics && <Metrics metrics={last.metrics as Record<string, unknown>} />],
          ]}
        />
        {last && last.errors.length > 0 && (
          <ul className="grid gap-1 text-bad" aria-label={`Errors of ${job.name}`}>
            {last.errors.slice(0, 5).map((error, index) => (
              <li key={index} className="break-words">
                <Prose text={error} />
              </li>
            ))}
            {last.errors.length > 5 && <li>and {last.errors.length - 5} more.</li>}
          </ul>
        )}
        <Runs name={job.name} />
      </div>
    </section>
  );
};
