/** The filters of the list. All of them are in the address. */
import { useNavigate } from '@tanstack/react-router';
import { Popover } from 'radix-ui';
import { useEffect, useState } from 'react';
import type { FileListSearch } from '../app/router';
import { number } from '../app/format';
import { STATES, type Scope } from '../api/types';
import { Badge, Button, Field, Input, Select, join } from '../ui/controls';
import { Icon } from '../ui/icons';

const TYPING_MS = 300;

export interface Counts {
  total: number;
  byStatus: Partial<Record<string, number>>;
  isCapped: boolean;
}

export const useSetSearch = () => {
  const navigate = useNavigate({ from: '/files' });
  return (change: Partial<FileListSearch>) =>
    void navigate({
      search: before => Object.fromEntries(Object.entries({ ...before, ...change }).filter(([, value]) => value !== undefined && value !== '')) as FileListSearch,
      replace: true,
    });
};

export const Filters = ({ search, scope, counts }: { search: FileListSearch; scope: Scope; counts: Counts | undefined }) => {
  const set = useSetSearch();
  const [name, setName] = useState(search.q ?? '');
  useEffect(() => setName(search.q ?? ''), [search.q]);
  useEffect(() => {
    if (name === (search.q ?? '')) return;
    const timer = setTimeout(() => set({ q: name || undefined }), TYPING_MS);
    return () => clearTimeout(timer);
    // Only typing counts: `set` is new with each rendering.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [name]);
  const states = search.status?.split(',') ?? [];
  const toggle = (state: string) => {
    const next = states.includes(state) ? states.filter(one => one !== state) : [...states, state];
    set({ status: next.join(',') || undefined });
  };
  const more = [search.batchId, search.code, search.owner, search.tenantId, search.createdAfter, search.createdBefore, search.warnings].filter(Boolean).length;
  return (
    <div className="mb-3 grid gap-2">
      <div className="flex flex-wrap gap-2">
        <Input type="search" aria-label="Filter by name" placeholder="Filter by name" value={name} onChange={event => setName(event.target.value)} className="w-auto min-w-40 flex-1 sm:max-w-sm" />
        <Popover.Root>
          <Popover.Trigger asChild>
            <Button icon="settings">
              Filters {more > 0 && <Badge tone="brand">{more}</Badge>}
            </Button>
          </Popover.Trigger>
          <Popover.Portal>
            <Popover.Content aria-label="More filters" align="end" sideOffset={6} collisionPadding={8} className="z-40 w-[min(20rem,calc(100vw-1rem))] rounded-md border border-line bg-panel p-4 shadow-lg">
              <MoreFilters search={search} scope={scope} />
            </Popover.Content>
          </Popover.Portal>
        </Popover.Root>
        <Select aria-label="Sort by" value={`${search.sort ?? 'createdAt'} ${search.order ?? 'desc'}`} onChange={event => {
          const [sort, order] = event.target.value.split(' ') as [FileListSearch['sort'], FileListSearch['order']];
          set({ sort: sort === 'createdAt' ? undefined : sort, order: order === 'desc' ? undefined : order });
        }} className="w-auto">
          <option value="createdAt desc">Newest first</option>
          <option value="createdAt asc">Oldest first</option>
          <option value="fileName asc">Name, A to Z</option>
          <option value="fileName desc">Name, Z to A</option>
          <option value="size desc">Largest first</option>
          <option value="size asc">Smallest first</option>
        </Select>
      </div>
      <div role="group" aria-label="Filter by state" className="flex flex-wrap gap-1.5">
        {STATES.map(state => {
          const files = counts?.byStatus[state] ?? 0;
          const pressed = states.includes(state);
          if (files === 0 && !pressed && !['ready', 'failed'].includes(state)) return null;
          return (
            <button
              key={state}
              type="button"
              aria-pressed={pressed}
              onClick={() => toggle(state)}
              className={join('inline-flex min-h-6 items-center gap-1.5 rounded-full border px-2.5 py-0.5', pressed ? 'border-brand bg-brand-wash text-brand' : 'border-line bg-panel hover:bg-sunken')}
            >
              {pressed && <Icon name="check" width="12" height="12" />}
              {state} <span className="text-soft tabular-nums">{number(files)}{counts?.isCapped && '+'}</span>
            </button>
          );
        })}
        {(states.length > 0 || more > 0 || search.q) && (
          <button type="button" className="px-1.5 text-brand underline" onClick={() => set({ status: undefined, q: undefined, batchId: undefined, code: undefined, owner: undefined, tenantId: undefined, createdAfter: undefined, createdBefore: undefined, warnings: undefined })}>
            Clear all filters
          </button>
        )}
      </div>
    </div>
  );
};

const MoreFilters = ({ search, scope }: { search: FileListSearch; scope: Scope }) => {
  const set = useSetSearch();
  const text = (name: 'code' | 'batchId' | 'owner' | 'tenantId', label: string, placeholder: string) => (
    <Field label={label}>
      {id => <Input key={search[name] ?? ''} id={id} defaultValue={search[name] ?? ''} placeholder={placeholder} spellCheck={false} onBlur={event => event.target.value.trim() !== (search[name] ?? '') && set({ [name]: event.target.value.trim() || undefined })} onKeyDown={event => event.key === 'Enter' && event.currentTarget.blur()} />}
    </Field>
  );
  const day = (name: 'createdAfter' | 'createdBefore', label: string) => (
    <Field label={label}>{id => <Input id={id} type="date" value={search[name] ?? ''} onChange={event => set({ [name]: event.target.value || undefined })} />}</Field>
  );
  return (
    <div className="grid gap-3">
      {text('code', 'Error code', 'PARSE_ERROR')}
      {text('batchId', 'Batch', 'Id of the batch')}
      {scope !== 'own' && text('owner', 'Owner', 'Name of the user')}
      {scope === 'all' && text('tenantId', 'Tenant', 'Name of the tenant')}
      <div className="grid grid-cols-2 gap-2">
        {day('createdAfter', 'From')}
        {day('createdBefore', 'To')}
      </div>
      <label className="flex items-center gap-2">
        <input type="checkbox" checked={search.warnings ?? false} onChange={event => set({ warnings: event.target.checked ? true : undefined })} className="size-4 accent-(--brand)" />
        Only files with warnings
      </label>
    </div>
  );
};
