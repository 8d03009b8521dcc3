/** One webhook: what it gets, what was delivered, and what the receiver said. */
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { landfall } from '../api/client';
import { randomKey } from '../app/ids';
import type { Webhook } from '../api/reports';
import { SCOPE_NAMES } from '../app/scope';
import { ActionButton, ConfirmButton } from '../ui/action';
import { Answer } from '../ui/answer';
import { Button, Heading, Panel } from '../ui/controls';
import { Dialog } from '../ui/dialog';
import { Secret } from '../ui/fields';
import { Facts } from '../ui/table';
import { Ago } from '../ui/time';
import { Deliveries } from './deliveries';
import { WebhookDialog } from './webhook-dialog';
import { DeleteWebhook, Switch, typesOf, WebhookState } from './webhooks';

const route = getRouteApi('/webhooks/$webhookId');

export const WebhookScreen = () => {
  const { webhookId } = route.useParams();
  const query = useQuery({ queryKey: ['webhook', webhookId], queryFn: ({ signal }) => landfall.get('/api/v2/webhooks/{webhookId}', { params: { webhookId }, signal }) });
  return (
    <>
      <p className="mb-2">
        <Link to="/webhooks" className="text-brand underline">
          All webhooks
        </Link>
      </p>
      {!query.data && <Heading title="Webhook" />}
      <Answer query={query}>{webhook => <Shown webhook={webhook} />}</Answer>
    </>
  );
};

const Shown = ({ webhook }: { webhook: Webhook }) => {
  const navigate = route.useNavigate();
  const [editing, setEditing] = useState(false);
  const [secret, setSecret] = useState('');
  const params = { webhookId: webhook.id };
  return (
    <>
      <Heading
        title={webhook.url}
        note={webhook.description}
        actions={
          <>
            <ActionButton
              icon="webhooks"
              disabled={!webhook.enabled}
              run={() => landfall.post('/api/v2/webhooks/{webhookId}/test', { params, idempotencyKey: randomKey() })}
              done="A test is on its way. See the deliveries."
              refresh={['deliveries']}
            >
              Send a test
            </ActionButton>
            <Button onClick={() => setEditing(true)}>Change</Button>
            <Switch webhook={webhook} />
            <ConfirmButton
              icon="keys"
              title="Rotate the secret?"
              question="You get a new secret, which is shown once. The old one also signs for a day, so that you can change your program meanwhile."
              action="Rotate"
              danger={false}
              run={async () => {
                const rotated = await landfall.post('/api/v2/webhooks/{webhookId}/rotate-secret', { params, idempotencyKey: randomKey() });
                setSecret(rotated.secret);
              }}
              refresh={['webhook']}
            >
              Rotate the secret
            </ConfirmButton>
            <DeleteWebhook webhook={webhook} gone={() => void navigate({ to: '/webhooks' })} />
          </>
        }
      />
      <div className="grid grid-cols-1 gap-4">
        <Panel title="Details">
          <Facts
            className="px-4 py-3"
            facts={[
              ['State', <WebhookState key="state" webhook={webhook} />],
              ['Events', typesOf(webhook)],
              ['Whose', SCOPE_NAMES[webhook.scope]],
              ['Old secret', webhook.oldSecretValidUntil && <span key="old">also signs, and ends <Ago at={webhook.oldSecretValidUntil} /></span>],
              [
                'Created',
                <span key="created">
                  <Ago at={webhook.createdAt} /> by {webhook.createdBy}
                </span>,
              ],
              ['Changed', webhook.updatedAt !== webhook.createdAt && <Ago at={webhook.updatedAt} />],
            ]}
          />
        </Panel>
        <Deliveries webhook={webhook} />
      </div>
      {editing && <WebhookDialog webhook={webhook} close={() => setEditing(false)} />}
      {secret && (
        <Dialog open onOpenChange={open => !open && setSecret('')} title="The new secret" description="The old one also signs for a day.">
          <Secret label="Secret" value={secret} />
          <div className="flex justify-end">
            <Button look="main" onClick={() => setSecret('')}>
              Done
            </Button>
          </div>
        </Dialog>
      )}
    </>
  );
};
