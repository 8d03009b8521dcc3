/** One thing that holds files up. */
import { Link } from '@tanstack/react-router';
import { landfall } from '../api/client';
import { probeCircuit, type Blocker } from '../api/reports';
import { count, number } from '../app/format';
import { useScope } from '../app/scope';
import { useSession } from '../app/session';
import { ActionButton } from '../ui/action';
import { Badge, Code, Prose, type Tone } from '../ui/controls';
import { Facts } from '../ui/table';
import { Ago, Countdown, Since } from '../ui/time';

export const SERVICES = { gateway: 'The extraction service', embeddings: 'The embedding service', scanner: 'The virus scanner', storage: 'The storage' } as const;

const KINDS: Record<Blocker['kind'], { tone: Tone; title: (blocker: Blocker) => string; until: string }> = {
  circuit: { tone: 'bad', title: blocker => `${blocker.service ? SERVICES[blocker.service] : 'A service'} does not work`, until: 'Next probe' },
  paused: { tone: 'warn', title: blocker => `The stage ${blocker.stage} is paused`, until: 'Until' },
  no_workers: { tone: 'bad', title: blocker => `No worker runs the stage ${blocker.stage}`, until: 'Until' },
  rate_limit: { tone: 'warn', title: blocker => `A rate limit slows the stage ${blocker.stage}`, until: 'Next file' },
  stuck: { tone: 'bad', title: () => 'Files are stuck', until: 'Until' },
  isolation: { tone: 'warn', title: () => 'Files are worked on alone', until: 'Until' },
  retry: { tone: 'busy', title: () => 'Files wait for their next attempt', until: 'Next attempt' },
  worker: { tone: 'calm', title: blocker => `All workers of the stage ${blocker.stage} are busy`, until: 'Until' },
  upload: { tone: 'calm', title: () => 'Uploads are not finished', until: 'Until' },
};

const URGENCY: Record<Tone, string> = { bad: 'Stands still', warn: 'Held up', busy: 'Goes on by itself', calm: 'Waits', good: '', brand: '' };

export const BlockerPanel = ({ blocker }: { blocker: Blocker }) => {
  const { tone, title, until } = KINDS[blocker.kind];
  return (
    <section className="rounded-lg border border-line bg-panel px-4 py-3">
      <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-2">
        <div className="min-w-0 flex-1 basis-64">
          <h2 className="text-[15px] font-semibold">{title(blocker)}</h2>
          <p className="mt-0.5">
            <Prose text={blocker.message} />
          </p>
        </div>
        <div className="flex items-center gap-3">
          <Badge tone={tone}>{URGENCY[tone]}</Badge>
          <p>
            <span className="text-xl font-semibold tabular-nums">{number(blocker.files)}</span> {blocker.files === 1 ? 'file' : 'files'}
          </p>
        </div>
      </div>
      <Facts
        className="mt-2"
        facts={[
          ['Since', blocker.since && <Ago at={blocker.since} />],
          ['Longest wait', blocker.oldestAt && <Since at={blocker.oldestAt} />],
          ['By', blocker.by],
          [until, blocker.until && <Countdown to={blocker.until} />],
          ['Last error', blocker.lastError],
        ]}
      />
      <div className="mt-3 flex flex-wrap items-center gap-2">
        <Remedy blocker={blocker} />
        {blocker.kind === 'upload' && (
          <Link to="/files" search={{ status: 'registered,uploaded' }} className="text-brand underline">
            Show these files
          </Link>
        )}
      </div>
    </section>
  );
};

const CHANGED = ['blockers', 'queue-status', 'dashboard', 'files'];

const Remedy = ({ blocker: { remedy, stage, service, isAllowed, files } }: { blocker: Blocker }) => {
  const scope = useScope();
  const { role } = useSession();
  if (remedy === null) return null;
  if (remedy === 'wait') return <p className="text-soft">Nothing is to be done: it goes on by itself.</p>;
  if (remedy === 'upload_again')
    return (
      <Link to="/upload" className="inline-flex min-h-8 items-center rounded-md border border-brand bg-brand px-3 py-1 font-medium text-brand-ink hover:brightness-110">
        Upload again
      </Link>
    );
  if (remedy === 'start_worker' && role === 'operator')
    return (
      <p className="text-soft">
        Start a worker: <Code>ROLE=worker{stage ? ` WORKER_STAGES=${stage}` : ''} landfall serve</Code>
      </p>
    );
  if (!isAllowed || remedy === 'start_worker') return <p className="text-soft">An operator of this server can change this.</p>;
  if (remedy === 'resume_stage' && stage)
    return (
      <ActionButton look="main" icon="play" run={() => landfall.post('/api/v2/admin/queues/{stage}/resume', { params: { stage } })} done={`The stage ${stage} goes on.`} refresh={CHANGED}>
        Resume the stage
      </ActionButton>
    );
  if (remedy === 'probe_circuit' && service)
    return (
      <ActionButton look="main" icon="retry" run={() => probeCircuit(service)} done="The next file tries the service." refresh={CHANGED}>
        Try the service now
      </ActionButton>
    );
  if (remedy === 'release_stuck')
    return (
      <ActionButton look="main" icon="play" run={() => landfall.post('/api/v2/uploads/stuck/retry-all', { query: { scope } })} done="They are in the queue again." refresh={CHANGED}>
        Release {count(files, 'stuck file')}
      </ActionButton>
    );
  return null;
};
