/** The deliveries of a webhook, with what the receiver answered. */
import { useState } from 'react';
import { landfall } from '../api/client';
import { randomKey } from '../app/ids';
import type { Delivery, Webhook } from '../api/reports';
import { duration, number } from '../app/format';
import { ActionButton } from '../ui/action';
import { Answer, More, usePages } from '../ui/answer';
import { Badge, Code, Empty, Panel, type Tone } from '../ui/controls';
import { Segments } from '../ui/fields';
import { Facts, Table, type Column } from '../ui/table';
import { Ago, Countdown } from '../ui/time';

type Status = Delivery['status'];
const STATES: Record<Status, { label: string; tone: Tone }> = {
  pending: { label: 'On its way', tone: 'busy' },
  delivered: { label: 'Delivered', tone: 'good' },
  exhausted: { label: 'Given up', tone: 'bad' },
};
const FAST_MS = 2_000;

export const Deliveries = ({ webhook }: { webhook: Webhook }) => {
  const [status, setStatus] = useState<Status | 'all'>('all');
  const query = usePages(
    ['deliveries', webhook.id, status],
    (cursor, signal) =>
      landfall.get('/api/v2/webhooks/{webhookId}/deliveries', { params: { webhookId: webhook.id }, query: { limit: 50, cursor, ...(status === 'all' ? {} : { status }) }, signal }),
    { refetchInterval: pages => (pages.some(page => page.deliveries.some(delivery => delivery.status === 'pending')) ? FAST_MS : 15_000) },
  );
  const columns: readonly Column<Delivery>[] = [
    { head: 'Event', bare: true, cell: delivery => <span className="font-medium">{delivery.eventType}</span> },
    { head: 'State', cell: delivery => <Badge tone={STATES[delivery.status].tone}>{STATES[delivery.status].label}</Badge> },
    {
      head: 'Answer',
      cell: delivery => (
        <>
          {delivery.responseStatus ?? (delivery.error ? 'none' : '–')} {delivery.durationMs != null && <span className="text-soft">after {duration(delivery.durationMs)}</span>}
        </>
      ),
    },
    {
      head: 'Attempts',
      cell: delivery => (
        <>
          {number(delivery.attempts)}{' '}
          {delivery.status === 'pending' && delivery.nextAttemptAt && (
            <span className="text-soft">
              next <Countdown to={delivery.nextAttemptAt} />
            </span>
          )}
        </>
      ),
    },
    { head: 'Created', cell: delivery => <Ago at={delivery.createdAt} /> },
    {
      head: 'Actions',
      bare: true,
      cell: delivery =>
        delivery.status !== 'pending' &&
        webhook.enabled && (
          <ActionButton
            icon="retry"
            aria-label={`Redeliver ${delivery.eventType}`}
            run={() => landfall.post('/api/v2/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver', { params: { webhookId: webhook.id, deliveryId: delivery.id }, idempotencyKey: randomKey() })}
            done="It is sent again, as a new delivery."
            refresh={['deliveries']}
          >
            Redeliver
          </ActionButton>
        ),
    },
  ];
  return (
    <Panel
      title="Deliveries"
      actions={
        <Segments
          label="Which deliveries"
          value={status}
          options={[
            ['all', 'All'],
            ['delivered', 'Delivered'],
            ['pending', 'On its way'],
            ['exhausted', 'Given up'],
          ]}
          onChange={setStatus}
        />
      }
    >
      <Answer query={query}>
        {({ pages }) => {
          const deliveries = pages.flatMap(page => page.deliveries);
          if (deliveries.length === 0) return <Empty title="There are no deliveries">{status === 'all' ? 'Send a test to see whether it arrives.' : 'None is in this state.'}</Empty>;
          return (
            <>
              <Table label="Deliveries" columns={columns} rows={deliveries} keyOf={delivery => delivery.id} below={delivery => <Details delivery={delivery} />} />
              <More query={query} what="deliveries" />
            </>
          );
        }}
      </Answer>
    </Panel>
  );
};

const Details = ({ delivery }: { delivery: Delivery }) => (
  <details>
    <summary className="w-fit cursor-pointer py-0.5 text-brand">
      Details<span className="sr-only"> of {delivery.eventType}</span>
    </summary>
    <Facts
      className="mt-2"
      facts={[
        ['Message', <Code key="message">{delivery.messageId}</Code>],
        ['Event', delivery.eventId],
        ['Last attempt', delivery.lastAttemptAt && <Ago at={delivery.lastAttemptAt} />],
        ['Error', delivery.error],
        ['Response', delivery.responseExcerpt && <pre className="max-h-48 overflow-auto rounded bg-sunken p-2 font-mono text-xs break-all whitespace-pre-wrap" tabIndex={0}>{delivery.responseExcerpt}</pre>],
      ]}
    />
  </details>
);
