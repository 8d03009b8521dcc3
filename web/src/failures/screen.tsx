/** Failed files by cause: how many, since when, whom they concern, and what helps. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { getGroups, getOperations, type Operation } from '../api/reports';
import { count } from '../app/format';
import { useScope } from '../app/scope';
import { OperationBox } from '../bulk/operation';
import { isRunning } from '../bulk/words';
import { Answer } from '../ui/answer';
import { Empty, Heading, Panel } from '../ui/controls';
import { GroupPanel } from './group';

const FAST_MS = 1_500;
const SLOW_MS = 15_000;
/** How long the result of an operation stays beside its cause. */
const SHOWN_MS = 3_600_000;

export const FailuresScreen = () => {
  const scope = useScope();
  const causes = useQuery({ queryKey: ['groups', scope], queryFn: ({ signal }) => getGroups(scope, signal) });
  const operations = useQuery({
    queryKey: ['operations', scope, 'recent'],
    queryFn: ({ signal }) => getOperations(scope, 50, undefined, signal),
    refetchInterval: ({ state }) => (state.data?.operations.some(isRunning) ? FAST_MS : SLOW_MS),
  });
  // An operation with ids does not know its cause, so the screen remembers it.
  const [discards, setDiscards] = useState<Record<string, string>>({});
  const recent = (operations.data?.operations ?? []).filter(operation => isRunning(operation) || Date.now() - Date.parse(operation.endedAt ?? operation.updatedAt) < SHOWN_MS);
  const causeOf = (operation: Operation) => discards[operation.operationId] ?? operation.filter.fingerprint;
  return (
    <>
      <Heading title="Failures" note="Files that failed for good, by their cause." />
      <Answer query={causes} what="Loading the failures">
        {groups => {
          const shown = new Set(groups.map(group => group.fingerprint));
          const elsewhere = recent.filter(operation => isRunning(operation) && operation.action === 'retry' && !shown.has(causeOf(operation) ?? ''));
          const total = groups.reduce((sum, group) => sum + group.count, 0);
          return (
            <div className="grid grid-cols-1 gap-4">
              {elsewhere.length > 0 && (
                <Panel title="Running retries">
                  <div className="grid gap-2 p-4">
                    {elsewhere.map(operation => (
                      <OperationBox key={operation.operationId} operation={operation} />
                    ))}
                  </div>
                </Panel>
              )}
              {groups.length === 0 ? (
                <Panel>
                  <Empty
                    title="No file has failed"
                    actions={
                      <Link to="/files" className="text-brand underline">
                        Go to the files
                      </Link>
                    }
                  >
                    When files fail, their causes are listed here, with what would help.
                  </Empty>
                </Panel>
              ) : (
                <p>
                  {count(total, 'failed file')} with {count(groups.length, 'cause')}.{' '}
                  <Link to="/files" search={{ status: 'failed' }} className="text-brand underline">
                    Show all of them
                  </Link>
                </p>
              )}
              {groups.map(group => (
                <GroupPanel
                  key={group.fingerprint}
                  group={group}
                  operations={latest(recent.filter(operation => causeOf(operation) === group.fingerprint))}
                  onDiscard={operationId => setDiscards(before => ({ ...before, [operationId]: group.fingerprint }))}
                />
              ))}
            </div>
          );
        }}
      </Answer>
    </>
  );
};

/** What runs; without that, the newest that ended. */
const latest = (operations: Operation[]) => {
  const running = operations.filter(isRunning);
  return running.length > 0 ? running : operations.slice(0, 1);
};
