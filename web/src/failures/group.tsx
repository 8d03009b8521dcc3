/** The failed files of one cause. */
import { Link } from '@tanstack/react-router';
import { landfall } from '../api/client';
import { randomKey } from '../app/ids';
import type { Group, Operation } from '../api/reports';
import { count, number } from '../app/format';
import { useScope } from '../app/scope';
import { OperationBox } from '../bulk/operation';
import { isRunning } from '../bulk/words';
import { ActionButton, ConfirmButton } from '../ui/action';
import { Badge, Code } from '../ui/controls';
import { Sparkline } from '../ui/chart';
import { Icon } from '../ui/icons';
import { Facts } from '../ui/table';
import { Ago } from '../ui/time';
import { discardGroup, MOST_DISCARDED } from './discard';

/** As many as the server tries before the rest. */
const TRIED_FIRST = 3;

/** The message of a file says more: what helps, and whether it is tried again. */
const firstSentence = (text: string) => /^.*?[.!?](?=\s|$)/s.exec(text)?.[0] ?? text;

const sentence = (text: string) => (/[.!?]$/.test(text) ? text : `${text}.`);

export const GroupPanel = ({ group, operations, onDiscard }: { group: Group; operations: Operation[]; onDiscard: (operationId: string) => void }) => {
  const scope = useScope();
  const busy = operations.some(isRunning);
  return (
    <section aria-labelledby={`cause-${group.fingerprint}`} className="rounded-lg border border-line bg-panel">
      <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-2 px-4 pt-3">
        <div className="min-w-0 flex-1 basis-64">
          <h2 id={`cause-${group.fingerprint}`} className="text-[15px] font-semibold break-words">
            {sentence(firstSentence(group.sample.message))}
          </h2>
          <p className="mt-1 flex flex-wrap items-center gap-2">
            <Code>{group.code}</Code> <Badge>at {group.stage}</Badge>
          </p>
        </div>
        <div className="flex items-end gap-4">
          <p>
            <span className="text-xl font-semibold tabular-nums">{number(group.count)}</span> {group.count === 1 ? 'file' : 'files'}
          </p>
          <Trend trend={group.trend ?? []} />
        </div>
      </div>
      <div className="grid gap-3 px-4 py-3">
        {group.advice && (
          <p className="flex items-start gap-2 rounded-md bg-brand-wash px-3 py-2">
            <Icon name="info" className="mt-0.5 shrink-0 text-brand" />
            <span>
              <span className="font-medium">What helps: </span>
              {sentence(group.advice)}
            </span>
          </p>
        )}
        <Facts
          facts={[
            [
              'For example',
              <Link key="sample" to="/files/$fileId" params={{ fileId: group.sample.fileId }} className="wrap-anywhere text-brand underline">
                {group.sample.fileName}
              </Link>,
            ],
            ['Whom', scope !== 'own' && <Owners group={group} />],
            [
              'Seen',
              <span key="seen">
                first <Ago at={group.firstSeen} />, last <Ago at={group.lastSeen} />
              </span>,
            ],
          ]}
        />
        {operations.map(operation => (
          <OperationBox key={operation.operationId} operation={operation} />
        ))}
        {!busy && <Actions group={group} onDiscard={onDiscard} />}
      </div>
    </section>
  );
};

const Trend = ({ trend }: { trend: number[] }) => {
  const total = trend.reduce((sum, value) => sum + value, 0);
  const most = Math.max(0, ...trend);
  const ago = trend.length - 1 - trend.lastIndexOf(most);
  const summary = total === 0 ? 'None failed in the last 24 hours.' : `${number(total)} failed in the last 24 hours, the most, ${number(most)}, ${ago === 0 ? 'in this hour' : `${count(ago, 'hour')} ago`}.`;
  return (
    <div>
      <Sparkline values={trend} summary={summary} />
      <p aria-hidden="true" className="text-xs text-soft">
        {number(total)} in 24 h
      </p>
    </div>
  );
};

const Owners = ({ group: { owners } }: { group: Group }) => {
  const rest = owners.count - owners.top.length;
  return (
    <span>
      {owners.top.map((owner, index) => (
        <span key={`${owner.tenantId} ${owner.userId}`}>
          {index > 0 && ', '}
          {owner.userId} <span className="text-soft">of {owner.tenantId}</span> ({number(owner.count)})
        </span>
      ))}
      {rest > 0 && ` and ${count(rest, 'more person', 'more people')}`}
    </span>
  );
};

const MAIN_LINK = 'inline-flex min-h-8 items-center gap-1.5 rounded-md border border-brand bg-brand px-3 py-1 font-medium text-brand-ink hover:brightness-110';

const Actions = ({ group, onDiscard }: { group: Group; onDiscard: (operationId: string) => void }) => {
  const scope = useScope();
  const some = Math.min(group.count, MOST_DISCARDED);
  const isFew = group.count <= TRIED_FIRST;
  const which = { status: 'failed', code: group.code };
  const retry = (
    <ActionButton
      look={group.retryHelps ? 'main' : 'plain'}
      icon="retry"
      run={() => landfall.post('/api/v2/uploads/dlq/retry-all', { body: { fingerprint: group.fingerprint, scope }, idempotencyKey: randomKey() })}
      refresh={['operations', 'groups', 'files', 'counts']}
    >
      {isFew ? (group.retryHelps ? 'Try again' : 'Try again all the same') : `Try ${TRIED_FIRST}, then the rest`}
    </ActionButton>
  );
  return (
    <div className="grid gap-2">
      <div className="flex flex-wrap gap-2">
        {group.retryHelps && retry}
        {!group.retryHelps && scope === 'own' && (
          <Link to="/upload" className={MAIN_LINK}>
            <Icon name="upload" /> Upload corrected copies
          </Link>
        )}
        <Link
          to="/files"
          search={which}
          className={group.retryHelps || scope === 'own' ? 'inline-flex min-h-8 items-center gap-1.5 rounded-md border border-line px-3 py-1 font-medium hover:bg-sunken' : MAIN_LINK}
        >
          <Icon name="files" /> Show the files
        </Link>
        {!group.retryHelps && retry}
        <ConfirmButton
          look="danger"
          icon="delete"
          title={`Discard ${count(group.count, 'file')}?`}
          question={
            <>
              {group.count > some ? `The newest ${number(some)} of these ${number(group.count)} files are deleted` : `${count(some, 'file')} with this cause ${some === 1 ? 'is' : 'are'} deleted`}, with their bytes. This cannot be undone.
            </>
          }
          action={`Discard ${count(some, 'file')}`}
          run={() => discardGroup(group.fingerprint, scope, onDiscard)}
          done={some === 1 ? 'The file is being deleted.' : 'The files are being deleted.'}
          refresh={['operations', 'groups', 'files', 'counts']}
        >
          {group.count === 1 ? 'Discard' : 'Discard all'}
        </ConfirmButton>
      </div>
      {!isFew && (
        <p className="text-soft">
          {TRIED_FIRST} files first; the rest follow unless they fail the same way.
          {!group.retryHelps && ' Without a change they will probably fail again.'}
        </p>
      )}
    </div>
  );
};
