/** The stages, the workers and the services behind them. */
import { landfall } from '../api/client';
import { probeCircuit, type Circuit, type Queue, type Worker } from '../api/reports';
import type { Stage } from '../api/types';
import { useNow } from '../app/clock';
import { number } from '../app/format';
import { useSession } from '../app/session';
import { SERVICES } from '../blockers/blocker';
import { ActionButton, ConfirmButton } from '../ui/action';
import { Badge, Panel } from '../ui/controls';
import { Table, type Column } from '../ui/table';
import { Ago, Countdown, Since } from '../ui/time';

const CHANGED = ['queue-status', 'blockers', 'dashboard'];
/** A worker that was not heard of for this long is probably gone. */
const SILENT_MS = 60_000;

interface StageRow extends Queue {
  stage: Stage;
}

const STAGES: readonly Column<StageRow>[] = [
  { head: 'Stage', bare: true, cell: row => <span className="font-medium">{row.stage}</span> },
  {
    head: 'State',
    cell: row =>
      row.paused ? (
        <>
          <Badge tone="warn">Paused</Badge>{' '}
          <span className="text-soft">
            by {row.paused.by}, <Ago at={row.paused.at} />
          </span>
        </>
      ) : row.limitedUntil ? (
        <>
          <Badge tone="warn">Rate limit</Badge>{' '}
          <span className="text-soft">
            next file <Countdown to={row.limitedUntil} />
          </span>
        </>
      ) : (
        <Badge tone="good">Open</Badge>
      ),
  },
  { head: 'Waiting', numeric: true, cell: row => number(row.waiting) },
  { head: 'Between attempts', numeric: true, cell: row => number(row.retrying) },
  { head: 'Running', numeric: true, cell: row => number(row.running) },
  { head: 'Actions', bare: true, cell: row => <PauseButton row={row} /> },
];

const PauseButton = ({ row: { stage, paused } }: { row: StageRow }) =>
  paused ? (
    <ActionButton icon="play" aria-label={`Resume the stage ${stage}`} run={() => landfall.post('/api/v2/admin/queues/{stage}/resume', { params: { stage } })} done={`The stage ${stage} goes on.`} refresh={CHANGED}>
      Resume
    </ActionButton>
  ) : (
    <ConfirmButton
      icon="pause"
      aria-label={`Pause the stage ${stage}`}
      title={`Pause the stage ${stage}?`}
      question="No further file of any tenant starts this stage until an operator resumes it. Files that are at it now go on."
      action="Pause"
      danger={false}
      run={() => landfall.post('/api/v2/admin/queues/{stage}/pause', { params: { stage } })}
      done={`The stage ${stage} is paused.`}
      refresh={CHANGED}
    >
      Pause
    </ConfirmButton>
  );

export const Stages = ({ queues }: { queues: Record<string, Queue> }) => {
  const order = ['scan', 'extract', 'chunk', 'embed'];
  const rows = Object.entries(queues)
    .map(([name, queue]) => ({ ...queue, stage: name.replace(/^file-/, '') as Stage }))
    .sort((a, b) => order.indexOf(a.stage) - order.indexOf(b.stage));
  return (
    <Panel title="Stages">
      <Table label="Stages" columns={STAGES} rows={rows} keyOf={row => row.stage} />
    </Panel>
  );
};

const Heartbeat = ({ at }: { at: string }) => {
  const now = useNow();
  const silent = now - Date.parse(at) > SILENT_MS;
  return (
    <>
      {silent && <Badge tone="bad">Silent</Badge>} <Ago at={at} />
    </>
  );
};

const WORKERS: readonly Column<Worker>[] = [
  { head: 'Worker', bare: true, cell: worker => <span className="font-medium break-all">{worker.name}</span> },
  { head: 'Stages', cell: worker => worker.stages.split(',').join(', ') },
  { head: 'Up for', cell: worker => <Since at={worker.startedAt} /> },
  { head: 'Heartbeat', cell: worker => <Heartbeat at={worker.heartbeatAt} /> },
];

export const Workers = ({ workers }: { workers: readonly Worker[] }) => (
  <Panel title="Workers">
    {workers.length === 0 ? (
      <p className="px-4 py-3 text-bad">No worker runs. Files wait until one starts.</p>
    ) : (
      <Table label="Workers" columns={WORKERS} rows={workers} keyOf={worker => worker.name} />
    )}
  </Panel>
);

const STATES = { closed: { label: 'Works', tone: 'good' }, open: { label: 'Does not work', tone: 'bad' }, 'half-open': { label: 'Is being tried', tone: 'warn' } } as const;

const Probe = ({ circuit }: { circuit: Circuit }) => {
  const { role } = useSession();
  if (role !== 'operator' || circuit.state !== 'open') return null;
  return (
    <ActionButton icon="retry" aria-label={`Try now: ${SERVICES[circuit.service].toLowerCase()}`} run={() => probeCircuit(circuit.service)} done="The next file tries the service." refresh={CHANGED}>
      Try now
    </ActionButton>
  );
};

const CIRCUITS: readonly Column<Circuit>[] = [
  { head: 'Service', bare: true, className: 'sm:min-w-40', cell: circuit => <span className="font-medium">{SERVICES[circuit.service]}</span> },
  { head: 'State', cell: circuit => <Badge tone={STATES[circuit.state].tone}>{STATES[circuit.state].label}</Badge> },
  { head: 'Failures in a row', numeric: true, cell: circuit => number(circuit.failures) },
  { head: 'Since', cell: circuit => (circuit.changedAt ? <Ago at={circuit.changedAt} /> : '–') },
  {
    head: 'Next probe',
    cell: circuit => {
      const next = circuit.nextProbeAt ?? (circuit.state === 'open' ? circuit.until : null);
      return next ? <Countdown to={next} /> : '–';
    },
  },
  { head: 'Actions', bare: true, cell: circuit => <Probe circuit={circuit} /> },
];

export const Circuits = ({ circuits }: { circuits: readonly Circuit[] }) =>
  circuits.length > 0 && (
    <Panel title="Services">
      <Table
        label="Services"
        columns={CIRCUITS}
        rows={circuits}
        keyOf={circuit => circuit.service}
        below={circuit =>
          circuit.lastError && (
            <p className="break-words">
              <span className="text-soft">Last error:</span> {circuit.lastError}
            </p>
          )
        }
      />
    </Panel>
  );
