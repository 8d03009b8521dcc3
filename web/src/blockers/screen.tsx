/** Why files do not move, and what would help: every cause on one screen. */
import type { StageLoad, TenantLoad } from '../api/reports';
import { number } from '../app/format';
import { Answer } from '../ui/answer';
import { Empty, Heading, Panel } from '../ui/controls';
import { Icon } from '../ui/icons';
import { Table, type Column } from '../ui/table';
import { Ago, Since } from '../ui/time';
import { useBlockers } from './banner';
import { BlockerPanel } from './blocker';

const REFRESH_MS = 5_000;

const STAGES: readonly Column<StageLoad>[] = [
  { head: 'Stage', bare: true, cell: stage => <span className="font-medium">{stage.stage}</span> },
  { head: 'Waiting', numeric: true, cell: stage => number(stage.waiting) },
  { head: 'Between attempts', numeric: true, cell: stage => number(stage.retrying) },
  { head: 'Running', numeric: true, cell: stage => number(stage.running) },
  { head: 'Oldest', cell: stage => (stage.oldestAt ? <Ago at={stage.oldestAt} /> : '–') },
  {
    head: 'Workers',
    numeric: true,
    cell: stage => (stage.workers === 0 && stage.waiting > 0 ? <span className="font-medium text-bad">none</span> : number(stage.workers)),
  },
];

const TENANTS: readonly Column<TenantLoad>[] = [
  { head: 'Tenant', bare: true, cell: tenant => <span className="font-medium">{tenant.tenantId}</span> },
  { head: 'Waiting', numeric: true, cell: tenant => number(tenant.waiting) },
  { head: 'Running', numeric: true, cell: tenant => number(tenant.running) },
  { head: 'Waits since', cell: tenant => (tenant.oldestAt ? <Since at={tenant.oldestAt} /> : '–') },
];

const byAge = (tenants: readonly TenantLoad[]) => [...tenants].sort((a, b) => (a.oldestAt ?? '~').localeCompare(b.oldestAt ?? '~'));

export const BlockersScreen = () => {
  const query = useBlockers(REFRESH_MS);
  return (
    <>
      <Heading title="Why does it not move?" note="What holds files up now, and what makes them move again. It is looked up every 5 seconds." />
      <Answer query={query} what="Looking">
        {({ blockers, stages, tenants }) => {
          const queued = stages.reduce((sum, stage) => sum + stage.waiting + stage.retrying + stage.running, 0);
          return (
            <div className="grid grid-cols-1 gap-4">
              {blockers.length === 0 ? (
                <Panel>
                  <Empty title="Everything moves">
                    <p className="flex items-center justify-center gap-1.5 text-good">
                      <Icon name="check" /> Nothing holds files up.
                    </p>
                    <p>{queued === 0 ? 'No file waits.' : `${number(queued)} files are on their way.`}</p>
                  </Empty>
                </Panel>
              ) : (
                blockers.map(blocker => <BlockerPanel key={`${blocker.kind} ${blocker.stage} ${blocker.service}`} blocker={blocker} />)
              )}
              <Panel title="The queue by stage">
                <Table label="The queue by stage" columns={STAGES} rows={stages} keyOf={stage => stage.stage} />
              </Panel>
              {tenants.length > 0 && (
                <Panel title="Tenants, those that wait longest first">
                  <Table label="Tenants by age" columns={TENANTS} rows={byAge(tenants)} keyOf={tenant => tenant.tenantId} />
                </Panel>
              )}
            </div>
          );
        }}
      </Answer>
    </>
  );
};
