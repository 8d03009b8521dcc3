/**
 * A list of any length, in pages. Only the pages on the screen are asked for again when something changes; the others are kept
 * until they are shown. Each page begins where the one before it ended.
 */
import { keepPreviousData, useQueries } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { landfall } from '../api/client';
import type { FileView, Scope } from '../api/types';
import type { FileListSearch } from '../app/router';
import { PAGE, queryOf } from './filter';

export interface FilePages {
  /** How many rows there are as far as is known. */
  count: number;
  hasMore: boolean;
  row: (index: number) => FileView | undefined;
  isPending: boolean;
  error: Error | null;
  retry: () => void;
  /** Says which rows are on the screen. */
  show: (first: number, last: number) => void;
}

export const useFilePages = (search: FileListSearch, scope: Scope): FilePages => {
  const filter = useMemo(
    () => ({ ...queryOf(search, scope), ...(search.sort ? { sort: search.sort } : {}), ...(search.order ? { order: search.order } : {}) }),
    [search, scope],
  );
  const key = JSON.stringify(filter);
  const [known, setKnown] = useState<Known>({ ...NOTHING, key });
  const current = known.key === key ? known : { ...NOTHING, key };
  const pages = pagesAt(current);

  const results = useQueries({
    queries: pages.map(page => ({
      queryKey: ['files', filter, current.cursors[page]],
      queryFn: async ({ signal }: { signal: AbortSignal }) => {
        const cursor = current.cursors[page];
        const list = await landfall.get('/api/v2/uploads/files', { query: { ...filter, limit: PAGE, ...(cursor ? { cursor } : {}) }, signal });
        return { page, list };
      },
      placeholderData: keepPreviousData,
      // While files are on their way, their waits change without an event.
      refetchInterval: 30_000,
    })),
  });

  useEffect(() => {
    setKnown(before => {
      const base = before.key === key ? before : current;
      const cursors = [...base.cursors];
      const sizes = [...base.sizes];
      let { last } = base;
      for (const { data, isPlaceholderData } of results) {
        if (!data || isPlaceholderData) continue;
        const next = data.list.nextCursor;
        sizes[data.page] = data.list.files.length;
        if (next) {
          cursors[data.page + 1] = next;
          if (last !== null && last <= data.page) last = null;
        } else {
          cursors.length = sizes.length = data.page + 1;
          last = data.page;
        }
      }
      const isSame = before.key === key && last === before.last && String(cursors) === String(before.cursors) && String(sizes) === String(before.sizes);
      return isSame ? before : { ...base, key, cursors, sizes, last };
    });
  });

  const loaded = new Map(results.flatMap(({ data }, index) => (data ? [[pages[index] as number, data.list.files] as const] : [])));
  const sum = current.sizes.reduce((total, size) => total + size, 0);
  const failure = results.find(result => result.error);
  return {
    // Until the first page of a new filter is there, the rows before it stay.
    count: current.sizes.length === 0 ? (loaded.get(0)?.length ?? 0) : sum,
    hasMore: current.last === null,
    row: index => {
      for (const page of pages) {
        const start = startOf(current, page);
        const files = loaded.get(page);
        if (files && index >= start && index < start + files.length) return files[index - start];
      }
      return undefined;
    },
    isPending: results.length > 0 && results.every(result => result.isPending),
    error: failure?.error && loaded.size === 0 ? failure.error : null,
    retry: () => results.forEach(result => void result.refetch()),
    show: (first, last) => {
      if (first === current.shown[0] && last === current.shown[1] && known.key === key) return;
      const changed = { ...current, shown: [first, last] as [number, number] };
      // Scrolling within the same pages changes nothing.
      if (known.key === key && String(pagesAt(changed)) === String(pages)) return;
      setKnown(before => ({ ...(before.key === key ? before : current), shown: [first, last] }));
    },
  };
};

/** What is known of the list: where each page begins, how many rows it has, and which is the last. */
interface Known {
  key: string;
  cursors: string[];
  sizes: number[];
  last: number | null;
  shown: [number, number];
}

const NOTHING: Omit<Known, 'key'> = { cursors: [''], sizes: [], last: null, shown: [0, 0] };

const startOf = ({ sizes }: Known, page: number) => sizes.slice(0, page).reduce((total, size) => total + size, 0);

/** The pages whose rows are on the screen, and the next one when the end of the list is. Behind a filter a page may be short, or empty. */
const pagesAt = ({ cursors, sizes, shown: [first, last] }: Known): number[] => {
  const pages: number[] = [];
  let start = 0;
  for (let page = 0; page < cursors.length && start <= last; page += 1) {
    const size = sizes[page];
    if (size === undefined || (size > 0 && start + size > first)) pages.push(page);
    start += size ?? 0;
  }
  // An empty list is asked for again too when something changes.
  return pages.length > 0 ? pages : [0];
};
