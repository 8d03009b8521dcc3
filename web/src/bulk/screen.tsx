/** Operations on many files: what runs, and what ran before. */
import { getOperations, type Operation } from '../api/reports';
import { useScope } from '../app/scope';
import { useSession } from '../app/session';
import { Answer, More, usePages } from '../ui/answer';
import { Empty, Heading, Panel } from '../ui/controls';
import { Table, type Column } from '../ui/table';
import { Ago } from '../ui/time';
import { Progress, Problems, StateBadge, Stop } from './operation';
import { ACTIONS, filesOf, isRunning } from './words';

const FAST_MS = 1_500;
const SLOW_MS = 15_000;

const COLUMNS: readonly Column<Operation>[] = [
  {
    head: 'Operation',
    bare: true,
    cell: operation => (
      <>
        <p className="font-medium">{ACTIONS[operation.action].title}</p>
        <p className="text-soft">{filesOf(operation)}</p>
      </>
    ),
  },
  { head: 'State', cell: operation => <StateBadge operation={operation} /> },
  { head: 'Files', cell: operation => <Progress operation={operation} />, className: 'min-w-48' },
  {
    head: 'Started',
    cell: operation => (
      <>
        <Ago at={operation.createdAt} /> <span className="text-soft">by {operation.createdBy}</span>
      </>
    ),
  },
  { head: 'Actions', bare: true, cell: operation => isRunning(operation) && <Stop operation={operation} /> },
];

export const BulkScreen = () => {
  const scope = useScope();
  const { role } = useSession();
  const query = usePages(['operations', scope, 'pages'], (cursor, signal) => getOperations(scope, 50, cursor, signal), {
    refetchInterval: pages => (pages.some(page => page.operations.some(isRunning)) ? FAST_MS : SLOW_MS),
  });
  return (
    <>
      <Heading title="Bulk operations" note="What was done with many files at once. Each runs on the server: you may leave this page." />
      <Answer query={query} what="Loading the operations">
        {({ pages }) => {
          const operations = pages.flatMap(page => page.operations);
          const running = operations.filter(isRunning);
          const ended = operations.filter(operation => !isRunning(operation));
          if (operations.length === 0)
            return (
              <Panel>
                <Empty title="There were no bulk operations">
                  Choose files in the list of files, or a cause under Failures, and retry, cancel or delete them together.
                  {scope === 'own' && role !== 'member' && ' Those of others are in another scope.'}
                </Empty>
              </Panel>
            );
          return (
            <div className="grid grid-cols-1 gap-4">
              {running.length > 0 && <List title="Running" operations={running} />}
              <List title="History" operations={ended}>
                <More query={query} what="operations" />
              </List>
            </div>
          );
        }}
      </Answer>
    </>
  );
};

const List = ({ title, operations, children }: { title: string; operations: Operation[]; children?: React.ReactNode }) => (
  <Panel title={title}>
    {operations.length === 0 ? (
      <p className="px-4 py-3 text-soft">None has ended.</p>
    ) : (
      <Table
        label={title}
        columns={COLUMNS}
        rows={operations}
        keyOf={operation => operation.operationId}
        below={operation => operation.errorCount + operation.skippedCount > 0 && <Problems operation={operation} />}
      />
    )}
    {children}
  </Panel>
);
