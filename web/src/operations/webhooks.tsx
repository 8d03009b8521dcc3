/** Webhooks: addresses that events are sent to. */
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { landfall } from '../api/client';
import type { Webhook } from '../api/reports';
import { SCOPE_NAMES } from '../app/scope';
import { ActionButton, ConfirmButton } from '../ui/action';
import { Answer, More, usePages } from '../ui/answer';
import { Badge, Button, Empty, Heading, Panel } from '../ui/controls';
import { Table, type Column } from '../ui/table';
import { Ago } from '../ui/time';
import { WebhookDialog } from './webhook-dialog';

export const WebhookState = ({ webhook }: { webhook: Webhook }) => {
  if (!webhook.enabled)
    return (
      <>
        <Badge tone="bad">Disabled</Badge> {webhook.disabledAt && <Ago at={webhook.disabledAt} />}
        {webhook.disabledReason && <p className="text-soft">{webhook.disabledReason}</p>}
      </>
    );
  if (webhook.failingSince)
    return (
      <>
        <Badge tone="warn">Failing</Badge>{' '}
        <span className="text-soft">
          since <Ago at={webhook.failingSince} />
        </span>
      </>
    );
  return <Badge tone="good">Enabled</Badge>;
};

/** Enable or disable. */
export const Switch = ({ webhook }: { webhook: Webhook }) => (
  <ActionButton
    icon={webhook.enabled ? 'pause' : 'play'}
    aria-label={`${webhook.enabled ? 'Disable' : 'Enable'} ${webhook.url}`}
    run={() => landfall.patch('/api/v2/webhooks/{webhookId}', { params: { webhookId: webhook.id }, body: { enabled: !webhook.enabled } })}
    done={webhook.enabled ? 'It is disabled: nothing is sent.' : 'It is enabled: events are sent from now on.'}
    refresh={['webhooks', 'webhook']}
  >
    {webhook.enabled ? 'Disable' : 'Enable'}
  </ActionButton>
);

export const DeleteWebhook = ({ webhook, gone }: { webhook: Webhook; gone?: () => void }) => (
  <ConfirmButton
    look="danger"
    icon="delete"
    aria-label={`Delete ${webhook.url}`}
    title="Delete the webhook?"
    question={
      <>
        Nothing more is sent to <span className="break-all">{webhook.url}</span>, and its deliveries are deleted too. This cannot be undone.
      </>
    }
    action="Delete"
    run={async () => {
      await landfall.delete('/api/v2/webhooks/{webhookId}', { params: { webhookId: webhook.id } });
      gone?.();
    }}
    done="The webhook was deleted."
    refresh={['webhooks']}
  >
    Delete
  </ConfirmButton>
);

export const typesOf = (webhook: Webhook) => (webhook.eventTypes ? webhook.eventTypes.join(', ') : 'all types');

const COLUMNS: readonly Column<Webhook>[] = [
  {
    head: 'Address',
    bare: true,
    cell: webhook => (
      <>
        <Link to="/webhooks/$webhookId" params={{ webhookId: webhook.id }} className="break-all text-brand underline">
          {webhook.url}
        </Link>
        {webhook.description && <p className="text-soft">{webhook.description}</p>}
      </>
    ),
  },
  { head: 'Events', cell: webhook => `${typesOf(webhook)}, ${SCOPE_NAMES[webhook.scope].toLowerCase()}` },
  { head: 'State', cell: webhook => <WebhookState webhook={webhook} /> },
  {
    head: 'Created',
    cell: webhook => (
      <>
        <Ago at={webhook.createdAt} /> <span className="text-soft">by {webhook.createdBy}</span>
      </>
    ),
  },
  {
    head: 'Actions',
    bare: true,
    cell: webhook => (
      <div className="flex flex-wrap gap-2 lg:justify-end">
        <Switch webhook={webhook} />
        <DeleteWebhook webhook={webhook} />
      </div>
    ),
  },
];

export const WebhooksScreen = () => {
  const [creating, setCreating] = useState(false);
  const query = usePages(['webhooks'], (cursor, signal) => landfall.get('/api/v2/webhooks', { query: { limit: 50, cursor }, signal }));
  return (
    <>
      <Heading
        title="Webhooks"
        note="Landfall sends events to these addresses, with a signature."
        actions={
          <Button look="main" onClick={() => setCreating(true)}>
            Add a webhook
          </Button>
        }
      />
      <Panel>
        <Answer query={query}>
          {({ pages }) => {
            const webhooks = pages.flatMap(page => page.webhooks);
            if (webhooks.length === 0) return <Empty title="There are no webhooks">Add one to tell your own programs when a file is ready or has failed.</Empty>;
            return (
              <>
                <Table label="Webhooks" columns={COLUMNS} rows={webhooks} keyOf={webhook => webhook.id} />
                <More query={query} what="webhooks" />
              </>
            );
          }}
        </Answer>
      </Panel>
      {creating && <WebhookDialog close={() => setCreating(false)} />}
    </>
  );
};
