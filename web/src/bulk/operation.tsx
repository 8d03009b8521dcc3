/** One operation on many files: how far it is, Stop, and what it could not do. */
import { Link } from '@tanstack/react-router';
import { landfall } from '../api/client';
import type { FileProblem, Operation } from '../api/reports';
import { count, number } from '../app/format';
import { ActionButton } from '../ui/action';
import { Badge, Code, Gauge, Spinner } from '../ui/controls';
import { ACTIONS, isRunning, passed, resultOf, stateOf } from './words';

export const Stop = ({ operation }: { operation: Operation }) => (
  <ActionButton
    icon="cancel"
    run={() => landfall.post('/api/v2/uploads/operations/{operationId}/stop', { params: { operationId: operation.operationId } })}
    done={`It stopped. Files that were already ${ACTIONS[operation.action].done} stay so.`}
    refresh={['operations', 'groups', 'files']}
  >
    Stop
  </ActionButton>
);

export const StateBadge = ({ operation }: { operation: Operation }) => {
  const { label, tone } = stateOf(operation);
  return (
    <Badge tone={tone}>
      {isRunning(operation) && <Spinner />}
      {label}
    </Badge>
  );
};

export const Progress = ({ operation }: { operation: Operation }) => {
  const total = operation.totalCount;
  const label = `${ACTIONS[operation.action].title}: ${number(passed(operation))}${total === null ? '' : ` of ${number(total)}`} files`;
  return (
    <div className="grid gap-1">
      {isRunning(operation) && total !== null && <Gauge value={passed(operation)} max={total} label={label} />}
      {isRunning(operation) && total !== null && (
        <p className="text-soft tabular-nums">
          {number(passed(operation))} of {number(total)}
        </p>
      )}
      <p className="tabular-nums">{resultOf(operation)}</p>
      {operation.reason && <p className="break-words">{operation.reason}</p>}
    </div>
  );
};

/** An operation in one box, where it is about something else that is on the screen. */
export const OperationBox = ({ operation }: { operation: Operation }) => (
  <div className="grid gap-2 rounded-md border border-line bg-sunken px-3 py-2">
    <div className="flex flex-wrap items-center justify-between gap-2">
      <div className="flex flex-wrap items-center gap-2">
        <span className="font-medium">{ACTIONS[operation.action].title}</span>
        <StateBadge operation={operation} />
      </div>
      {isRunning(operation) && <Stop operation={operation} />}
    </div>
    <Progress operation={operation} />
    <Problems operation={operation} />
  </div>
);

export const Problems = ({ operation }: { operation: Operation }) => (
  <>
    <ProblemList title="Errors" problems={operation.errors} total={operation.errorCount} />
    <ProblemList title="Files left alone" problems={operation.skipped} total={operation.skippedCount} />
  </>
);

const ProblemList = ({ title, problems, total }: { title: string; problems: readonly FileProblem[]; total: number }) =>
  total > 0 && (
    <details>
      <summary className="w-fit cursor-pointer py-0.5 text-brand">
        {title}: {number(total)}
      </summary>
      <ul className="mt-1 grid max-h-72 gap-1 overflow-y-auto" tabIndex={0} aria-label={title}>
        {problems.map(problem => (
          <li key={problem.fileId} className="border-t border-line pt-1 break-words first:border-t-0">
            <Link to="/files/$fileId" params={{ fileId: problem.fileId }} className="font-mono text-brand underline">
              {problem.fileId.slice(0, 8)}
            </Link>{' '}
            <Code>{problem.code}</Code> {problem.message}
          </li>
        ))}
        {problems.length < total && <li className="text-soft">and {count(total - problems.length, 'more file', 'more files')} that are not listed.</li>}
      </ul>
    </details>
  );
