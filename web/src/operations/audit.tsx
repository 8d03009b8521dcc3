/** What administrators did, and which requests were refused for lack of permission. */
import { getRouteApi } from '@tanstack/react-router';
import { useEffect, useState, type FormEvent } from 'react';
import { landfall } from '../api/client';
import type { AuditEntry } from '../api/reports';
import { SCOPES, useScope, useSetScope } from '../app/scope';
import { useSession } from '../app/session';
import { Answer, More, usePages } from '../ui/answer';
import { Badge, Button, Code, Empty, Field, Heading, Input, Panel, Select, type Tone } from '../ui/controls';
import { Icon } from '../ui/icons';
import { Only } from '../ui/only';
import { Table, type Column } from '../ui/table';
import { Ago } from '../ui/time';

const route = getRouteApi('/audit');

type Outcome = AuditEntry['outcome'];
const OUTCOMES: Record<Outcome, { label: string; tone: Tone }> = {
  started: { label: 'Not ended', tone: 'busy' },
  done: { label: 'Done', tone: 'good' },
  failed: { label: 'Failed', tone: 'warn' },
  refused: { label: 'Refused', tone: 'bad' },
};
const isOutcome = (value: string | undefined): value is Outcome => value !== undefined && value in OUTCOMES;

const NOTES = { own: 'What you did.', tenant: 'What was done in your tenant, and what was refused.', all: 'What was done on this server, and what was refused.' } as const;

const COLUMNS: readonly Column<AuditEntry>[] = [
  { head: 'When', cell: entry => <Ago at={entry.at} /> },
  {
    head: 'Who',
    cell: entry => (
      <>
        {entry.actorUserId ?? 'nobody signed in'} <span className="text-soft">{entry.actorTenantId && `of ${entry.actorTenantId}`}</span>
        <p className="text-xs break-all text-soft">{[entry.credential, entry.address].filter(Boolean).join(', ')}</p>
      </>
    ),
  },
  {
    head: 'What',
    cell: entry => (
      <>
        <span className="font-medium break-all">{entry.action}</span>
        <p className="text-xs break-all text-soft">
          {entry.method} {entry.path}
        </p>
      </>
    ),
  },
  { head: 'Of', cell: entry => ([entry.targetUserId, entry.targetTenantId].some(Boolean) ? [entry.targetUserId, entry.targetTenantId].filter(Boolean).join(' of ') : '–') },
  {
    head: 'Outcome',
    cell: entry => (
      <>
        <Badge tone={OUTCOMES[entry.outcome].tone}>{OUTCOMES[entry.outcome].label}</Badge> {entry.status} {entry.code && <Code>{entry.code}</Code>}
      </>
    ),
  },
];

export const AuditScreen = () => (
  <Only role="tenant_admin" title="Audit log">
    <Audit />
  </Only>
);

const Audit = () => {
  const { actor, action, outcome } = route.useSearch();
  const scope = useScope();
  const setScope = useSetScope();
  const { role } = useSession();
  const widest = SCOPES[role].at(-1)!;
  const filter = { scope, ...(actor ? { actor } : {}), ...(action ? { action } : {}), ...(isOutcome(outcome) ? { outcome } : {}) };
  const query = usePages(['audit', filter], (cursor, signal) => landfall.get('/api/v2/admin/audit-log', { query: { ...filter, limit: 50, cursor }, signal }));
  return (
    <>
      <Heading
        title="Audit log"
        note={NOTES[scope]}
        actions={
          <>
            {scope !== widest && <Button onClick={() => setScope(widest)}>Show all that you may see</Button>}
            <a
              href={landfall.url('/api/v2/admin/audit-log/export', { query: filter })}
              download="audit-log.jsonl"
              className="inline-flex min-h-8 items-center gap-1.5 rounded-md border border-line bg-panel px-3 py-1 font-medium hover:bg-sunken"
            >
              <Icon name="download" /> Export as JSON lines
            </a>
          </>
        }
      />
      <div className="grid grid-cols-1 gap-4">
        <Filters key={JSON.stringify([actor, action, outcome])} />
        <Panel>
          <Answer query={query}>
            {({ pages }) => {
              const entries = pages.flatMap(page => page.entries);
              if (entries.length === 0) return <Empty title="No entry matches">Actions of administrators, and requests that were refused, are listed here.</Empty>;
              return (
                <>
                  <Table label="Audit log" columns={COLUMNS} rows={entries} keyOf={entry => entry.id} />
                  <More query={query} what="entries" />
                </>
              );
            }}
          </Answer>
        </Panel>
      </div>
    </>
  );
};

const Filters = () => {
  const given = route.useSearch();
  const navigate = route.useNavigate();
  const [actor, setActor] = useState(given.actor ?? '');
  const [action, setAction] = useState(given.action ?? '');
  const [outcome, setOutcome] = useState(given.outcome ?? '');
  useEffect(() => setOutcome(given.outcome ?? ''), [given.outcome]);
  const show = (next: { actor: string; action: string; outcome: string }) =>
    void navigate({ search: before => ({ ...before, actor: next.actor.trim() || undefined, action: next.action.trim() || undefined, outcome: next.outcome || undefined }) });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    show({ actor, action, outcome });
  };
  const isFiltered = given.actor || given.action || given.outcome;
  return (
    <form role="search" aria-label="Audit log" onSubmit={submit} className="flex flex-wrap items-end gap-3">
      <div className="min-w-0 flex-1 basis-40 sm:max-w-56">
        <Field label="User who asked">{id => <Input id={id} type="search" value={actor} onChange={event => setActor(event.target.value)} />}</Field>
      </div>
      <div className="min-w-0 flex-1 basis-40 sm:max-w-56">
        <Field label="Operation">{id => <Input id={id} type="search" placeholder="such as deleteFile" value={action} onChange={event => setAction(event.target.value)} />}</Field>
      </div>
      <div className="min-w-0 basis-36">
        <Field label="Outcome">
          {id => (
            <Select id={id} value={outcome} onChange={event => setOutcome(event.target.value)}>
              <option value="">Any</option>
              {Object.entries(OUTCOMES).map(([key, { label }]) => (
                <option key={key} value={key}>
                  {label}
                </option>
              ))}
            </Select>
          )}
        </Field>
      </div>
      <Button type="submit" icon="search">
        Show
      </Button>
      {isFiltered && (
        <Button look="quiet" onClick={() => show({ actor: '', action: '', outcome: '' })}>
          Clear
        </Button>
      )}
    </form>
  );
};
