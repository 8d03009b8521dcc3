/** Operations on many files, in words. */
import type { Action, Operation, OperationFilter } from '../api/reports';
import type { Scope } from '../api/types';
import { count, exact, number } from '../app/format';
import type { Tone } from '../ui/controls';

export const ACTIONS: Record<Action, { title: string; done: string }> = {
  retry: { title: 'Retry', done: 'retried' },
  cancel: { title: 'Cancel', done: 'cancelled' },
  delete: { title: 'Delete', done: 'deleted' },
};

export const isRunning = (operation: Pick<Operation, 'status'>) => operation.status === 'canary' || operation.status === 'running';

export const stateOf = (operation: Operation): { label: string; tone: Tone } => {
  switch (operation.status) {
    case 'canary':
      return { label: 'Trying 3 files first', tone: 'busy' };
    case 'running':
      return { label: 'Running', tone: 'busy' };
    case 'stopped':
      return { label: 'Stopped', tone: 'warn' };
    default:
      return operation.errorCount > 0 ? { label: 'Done with errors', tone: 'warn' } : { label: 'Done', tone: 'good' };
  }
};

const WHOSE: Record<Scope, string> = { own: 'of the person who started it', tenant: 'of the tenant', all: 'of all tenants' };

/** Which files it is about. */
export const filesOf = ({ filter, scope, action }: Pick<Operation, 'filter' | 'scope' | 'action'>): string => {
  const parts = partsOf(filter);
  if (parts.length === 0 && action !== 'retry') return 'Files that were chosen one by one, or all files';
  const what = filter.status ? `Files that are ${list(filter.status)}` : action === 'retry' ? 'Failed files' : 'Files';
  return [what, WHOSE[scope], ...parts].join(', ');
};

const list = (commas: string) => commas.split(',').join(' or ');

const partsOf = (filter: OperationFilter): string[] => {
  const parts: [value: unknown, words: string][] = [
    [filter.fingerprint, 'with one cause'],
    [filter.code, `with the code ${list(filter.code ?? '')}`],
    [filter.stage, `at the stage ${filter.stage}`],
    [filter.batchId, `of the batch ${filter.batchId}`],
    [filter.q, `with “${filter.q}” in the name`],
    [filter.owner, `of ${filter.owner}`],
    [filter.tenantId, `of the tenant ${filter.tenantId}`],
    [filter.createdAfter, `registered since ${filter.createdAfter && exact(filter.createdAfter)}`],
    [filter.createdBefore, `registered before ${filter.createdBefore && exact(filter.createdBefore)}`],
    [filter.warnings, 'with warnings'],
  ];
  return parts.filter(([value]) => value).map(([, words]) => words);
};

/** How many files are dealt with, whatever became of them. */
export const passed = (operation: Operation) => operation.doneCount + operation.skippedCount + operation.errorCount;

export const resultOf = (operation: Operation): string => {
  const parts = [`${count(operation.doneCount, 'file')} ${ACTIONS[operation.action].done}`];
  if (operation.skippedCount > 0) parts.push(`${number(operation.skippedCount)} left alone`);
  if (operation.errorCount > 0) parts.push(count(operation.errorCount, 'error'));
  return parts.join(', ');
};
