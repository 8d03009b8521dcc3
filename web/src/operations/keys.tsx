/** API keys of programs. */
import { useState } from 'react';
import { landfall } from '../api/client';
import type { ApiKey } from '../api/reports';
import { useNow } from '../app/clock';
import { useScope } from '../app/scope';
import { ConfirmButton } from '../ui/action';
import { Answer, More, usePages } from '../ui/answer';
import { Badge, Button, Code, Empty, Heading, Panel } from '../ui/controls';
import { Table, type Column } from '../ui/table';
import { Ago } from '../ui/time';
import { NewKeyDialog } from './key-dialog';

const State = ({ apiKey }: { apiKey: ApiKey }) => {
  const now = useNow();
  if (apiKey.revokedAt)
    return (
      <>
        <Badge tone="bad">Revoked</Badge> <Ago at={apiKey.revokedAt} /> {apiKey.revokedBy && `by ${apiKey.revokedBy}`}
      </>
    );
  if (apiKey.expiresAt && Date.parse(apiKey.expiresAt) <= now)
    return (
      <>
        <Badge tone="warn">Expired</Badge> <Ago at={apiKey.expiresAt} />
      </>
    );
  return (
    <>
      <Badge tone="good">Valid</Badge>{' '}
      <span className="text-soft">
        {apiKey.expiresAt ? (
          <>
            expires <Ago at={apiKey.expiresAt} />
          </>
        ) : (
          'never expires'
        )}
      </span>
    </>
  );
};

const COLUMNS: readonly Column<ApiKey>[] = [
  {
    head: 'Key',
    bare: true,
    cell: key => (
      <>
        <p className="font-medium">{key.name}</p>
        <p className="text-soft">
          <Code>{key.hint}</Code> for {key.userId} of {key.tenantId}
        </p>
      </>
    ),
  },
  {
    head: 'May',
    cell: key => (
      <>
        {key.scopes.join(', ')}
        {key.scopes.includes('admin') && key.role !== 'member' && ` (as ${key.role.replace('_', ' ')})`}
      </>
    ),
  },
  { head: 'State', cell: key => <State apiKey={key} /> },
  {
    head: 'Last used',
    cell: key =>
      key.lastUsedAt ? (
        <>
          <Ago at={key.lastUsedAt} /> {key.lastUsedFrom && <span className="text-soft">from {key.lastUsedFrom}</span>}
        </>
      ) : (
        'never'
      ),
  },
  {
    head: 'Created',
    cell: key => (
      <>
        <Ago at={key.createdAt} /> <span className="text-soft">by {key.createdBy}</span>
      </>
    ),
  },
  {
    head: 'Actions',
    bare: true,
    cell: key =>
      !key.revokedAt && (
        <ConfirmButton
          look="danger"
          aria-label={`Revoke ${key.name}`}
          title={`Revoke ${key.name}?`}
          question="The server refuses it from now on. Programs that use it stop working. This cannot be undone."
          action="Revoke"
          run={() => landfall.delete('/api/v2/keys/{keyId}', { params: { keyId: key.keyId } })}
          done={`${key.name} was revoked.`}
          refresh={['keys']}
        >
          Revoke
        </ConfirmButton>
      ),
  },
];

export const KeysScreen = () => {
  const scope = useScope();
  const [creating, setCreating] = useState(false);
  const query = usePages(['keys', scope], (cursor, signal) => landfall.get('/api/v2/keys', { query: { scope, limit: 50, cursor }, signal }));
  return (
    <>
      <Heading
        title="API keys"
        note="With a key a program uses the API in the name of a person."
        actions={
          <Button look="main" onClick={() => setCreating(true)}>
            Create a key
          </Button>
        }
      />
      <Panel>
        <Answer query={query}>
          {({ pages }) => {
            const keys = pages.flatMap(page => page.keys);
            if (keys.length === 0) return <Empty title="There are no keys">Create one for each program, with as few rights as it needs.</Empty>;
            return (
              <>
                <Table label="API keys" columns={COLUMNS} rows={keys} keyOf={key => key.keyId} />
                <More query={query} what="keys" />
              </>
            );
          }}
        </Answer>
      </Panel>
      {creating && <NewKeyDialog close={() => setCreating(false)} />}
    </>
  );
};
