/** How much is stored and how much may be; for operators of every tenant, with a way to change it. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { landfall } from '../api/client';
import type { Amounts, Quota, Tenant } from '../api/reports';
import { bytes, number, percent } from '../app/format';
import { useSession } from '../app/session';
import { ActionButton } from '../ui/action';
import { Answer, More, usePages } from '../ui/answer';
import { Badge, Button, Field, Gauge, Heading, Input, Panel } from '../ui/controls';
import { Table, type Column } from '../ui/table';
import { QuotaDialog } from './quota-dialog';

export const QuotasScreen = () => {
  const { role, tenantId } = useSession();
  const query = useQuery({ queryKey: ['quota'], queryFn: ({ signal }) => landfall.get('/api/v2/uploads/quota', { signal }) });
  return (
    <>
      <Heading title="Quotas" note="How much a tenant stores, and how much it may store." />
      <div className="grid grid-cols-1 gap-4">
        <Panel title={`Your tenant: ${tenantId}`}>
          <Answer query={query}>{quota => <Usage quota={quota} />}</Answer>
        </Panel>
        {role === 'operator' && <Tenants />}
      </div>
    </>
  );
};

const share = ({ used, reserved, limit }: Amounts) => (limit > 0 ? ((used + reserved) / limit) * 100 : used + reserved > 0 ? 100 : 0);
const toneOf = (amounts: Amounts) => (share(amounts) >= 95 ? 'bad' : share(amounts) >= 80 ? 'warn' : 'brand');

const Usage = ({ quota }: { quota: Quota }) => (
  <div className="grid gap-4 px-4 py-3 sm:grid-cols-2">
    <Meter name="Storage" amounts={quota.bytes} format={bytes} />
    <Meter name="Files" amounts={quota.files} format={number} />
  </div>
);

const Meter = ({ name, amounts, format }: { name: string; amounts: Amounts; format: (value: number) => string }) => (
  <div className="grid gap-1.5">
    <div className="flex items-baseline justify-between gap-2">
      <h3 className="font-medium">{name}</h3>
      <span className="tabular-nums">{percent(Math.min(100, Math.round(share(amounts) * 10) / 10))} used</span>
    </div>
    <Gauge value={amounts.used + amounts.reserved} max={amounts.limit} label={`${name} used`} tone={toneOf(amounts)} />
    <p className="text-soft tabular-nums">
      {format(amounts.used)} of {format(amounts.limit)}
      {amounts.reserved > 0 && `, and ${format(amounts.reserved)} reserved for uploads`}. {format(amounts.free)} free.
    </p>
    {share(amounts) >= 95 && <p className="text-bad">{amounts.free === 0 ? 'It is full: new files are refused.' : 'It is almost full.'} Delete files, or ask an operator for more.</p>}
  </div>
);

const Cell = ({ amounts, format, name, isDefault }: { amounts: Amounts; format: (value: number) => string; name: string; isDefault: boolean }) => (
  <div className="grid min-w-36 gap-1">
    <span className="tabular-nums">
      {format(amounts.used + amounts.reserved)} of {format(amounts.limit)} {!isDefault && <Badge tone="brand">own limit</Badge>}
    </span>
    <Gauge value={amounts.used + amounts.reserved} max={amounts.limit} label={name} tone={toneOf(amounts)} />
  </div>
);

const Tenants = () => {
  const [typed, setTyped] = useState('');
  const [q, setQ] = useState('');
  const [edited, setEdited] = useState<Tenant | null>(null);
  const query = usePages(['quota', 'tenants', q], (cursor, signal) => landfall.get('/api/v2/admin/tenants', { query: { q: q || undefined, limit: 50, cursor }, signal }));
  const columns: readonly Column<Tenant>[] = [
    { head: 'Tenant', bare: true, cell: tenant => <span className="font-medium break-all">{tenant.tenantId}</span> },
    { head: 'Storage', cell: tenant => <Cell amounts={tenant.bytes} format={bytes} name={`Storage of ${tenant.tenantId}`} isDefault={tenant.isDefault.bytes} /> },
    { head: 'Files', cell: tenant => <Cell amounts={tenant.files} format={number} name={`Files of ${tenant.tenantId}`} isDefault={tenant.isDefault.files} /> },
    {
      head: 'Actions',
      bare: true,
      cell: tenant => (
        <div className="flex flex-wrap gap-2 sm:justify-end">
          {!(tenant.isDefault.bytes && tenant.isDefault.files) && (
            <ActionButton
              aria-label={`Default limits for ${tenant.tenantId}`}
              run={() => landfall.put('/api/v2/admin/tenants/{tenantId}/quota', { params: { tenantId: tenant.tenantId }, body: {} })}
              done={`${tenant.tenantId} has the default limits.`}
              refresh={['quota']}
            >
              Default
            </ActionButton>
          )}
          <Button aria-label={`Change the limits of ${tenant.tenantId}`} onClick={() => setEdited(tenant)}>
            Change
          </Button>
        </div>
      ),
    },
  ];
  return (
    <Panel title="All tenants">
      <form
        role="search"
        className="flex max-w-md items-end gap-2 px-4 pt-3 pb-2"
        onSubmit={event => {
          event.preventDefault();
          setQ(typed.trim());
        }}
      >
        <div className="flex-1">
          <Field label="Find a tenant">{id => <Input id={id} type="search" value={typed} onChange={event => setTyped(event.target.value)} />}</Field>
        </div>
        <Button type="submit" icon="search">
          Find
        </Button>
      </form>
      <Answer query={query}>
        {({ pages }) => {
          const tenants = pages.flatMap(page => page.tenants);
          if (tenants.length === 0) return <p className="px-4 py-3 text-soft">{q ? `No tenant has “${q}” in its name.` : 'No tenant has stored anything.'}</p>;
          return (
            <>
              <Table label="Tenants" columns={columns} rows={tenants} keyOf={tenant => tenant.tenantId} />
              <More query={query} what="tenants" />
            </>
          );
        }}
      </Answer>
      {edited && <QuotaDialog tenant={edited} close={() => setEdited(null)} />}
    </Panel>
  );
};
