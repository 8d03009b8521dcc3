/** The filter of the list: as it is in the address, and as the API takes it. */
import type { Scope } from '../api/types';
import type { FileFilter, FileListSearch } from '../app/router';

export const PAGE = 100;

/** What the API takes: without what is not set, and with the instants of days. */
export const queryOf = ({ status, q, batchId, code, owner, tenantId, createdAfter, createdBefore, warnings }: FileFilter, scope: Scope) => ({
  ...(status ? { status } : {}),
  ...(q ? { q } : {}),
  ...(batchId ? { batchId } : {}),
  ...(code ? { code } : {}),
  ...(owner ? { owner } : {}),
  ...(tenantId ? { tenantId } : {}),
  ...(createdAfter ? { createdAfter: startOf(createdAfter) } : {}),
  ...(createdBefore ? { createdBefore: startOf(createdBefore, 1) } : {}),
  ...(warnings ? { warnings } : {}),
  ...(scope === 'own' ? {} : { scope }),
});

/** A day of the person's own calendar as an instant. */
const startOf = (day: string, later = 0): string => {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(day)) return day;
  const [year, month, date] = day.split('-').map(Number) as [number, number, number];
  return new Date(year, month - 1, date + later).toISOString();
};

export const isFiltered = (search: FileListSearch) =>
  Boolean(search.status ?? search.q ?? search.batchId ?? search.code ?? search.owner ?? search.tenantId ?? search.createdAfter ?? search.createdBefore ?? search.warnings);

/** The filter in words, for a confirmation: `failed files of the code PARSE_ERROR`. */
export const inWords = (search: FileFilter, scope: Scope): string => {
  const parts = [
    search.status ? search.status.split(',').join(' or ') : '',
    'files',
    scope === 'tenant' ? 'of your tenant' : scope === 'all' ? 'of all tenants' : '',
    search.tenantId ? `of the tenant ${search.tenantId}` : '',
    search.owner ? `of ${search.owner}` : '',
    search.q ? `with “${search.q}” in their name` : '',
    search.code ? `with the error ${search.code}` : '',
    search.batchId ? `of the batch ${search.batchId}` : '',
    search.createdAfter ? `since ${search.createdAfter}` : '',
    search.createdBefore ? `until ${search.createdBefore}` : '',
    search.warnings ? 'with warnings' : '',
  ];
  return parts.filter(Boolean).join(' ');
};
