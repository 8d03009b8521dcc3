/** Search: passages with their words highlighted, which open the document at their place. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useRef, useState, type FormEvent, type KeyboardEvent } from 'react';
import { landfall } from '../api/client';
import { Failure } from '../app/failure';
import { count } from '../app/format';
import { Button, Code, Empty, Heading, IconButton, Input, Loading, Notice, Panel } from '../ui/controls';
import { highlighted } from './highlight';

const LIMIT = 20;
const MOST = 50;

export const SearchScreen = () => {
  const search = useSearch({ from: '/search' });
  const navigate = useNavigate({ from: '/search' });
  const field = useRef<HTMLInputElement>(null);
  const [typed, setTyped] = useState(search.q ?? '');
  const [limit, setLimit] = useState(LIMIT);
  useEffect(() => {
    setTyped(search.q ?? '');
    setLimit(LIMIT);
  }, [search.q]);
  useEffect(() => field.current?.focus(), []);
  const { q = '', batchId, fileId } = search;
  const result = useQuery({
    queryKey: ['search', q, batchId, fileId, limit],
    queryFn: ({ signal }) => landfall.post('/api/v2/search', { body: { query: q, limit, ...(batchId ? { batchId } : {}), ...(fileId ? { fileId } : {}) }, signal }),
    enabled: q.trim() !== '',
    placeholderData: keepPreviousData,
    retry: false,
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void navigate({ search: before => ({ ...before, q: typed.trim() || undefined }) });
  };
  const hits = q.trim() === '' ? [] : (result.data?.hits ?? []);
  const only = (name: 'batchId' | 'fileId', label: string, value: string) => (
    <span className="inline-flex items-center gap-1 rounded-full border border-line bg-panel py-0.5 pr-0.5 pl-2.5">
      {label} <Code>{value.slice(0, 8)}</Code>
      <IconButton icon="close" label={`Search in more than this ${label}`} className="size-6" onClick={() => void navigate({ search: before => ({ ...before, [name]: undefined }) })} />
    </span>
  );
  return (
    <>
      <Heading title="Search" note="Words, or a question. The meaning counts too." />
      <form role="search" onSubmit={submit} className="mb-3 flex gap-2">
        <Input ref={field} type="search" aria-label="Search in your documents" placeholder="Search in your documents" maxLength={1000} value={typed} onChange={event => setTyped(event.target.value)} onKeyDown={event => event.key === 'ArrowDown' && (event.preventDefault(), focusHit(0))} className="min-h-10 text-base" />
        <Button look="main" type="submit" icon="search" className="min-h-10">
          Search
        </Button>
      </form>
      {(batchId ?? fileId) && (
        <div className="mb-3 flex flex-wrap items-center gap-2">
          Only in {batchId && only('batchId', 'batch', batchId)} {fileId && only('fileId', 'file', fileId)}
        </div>
      )}
      {q.trim() === '' ? (
        <Panel>
          <Empty title="What are you looking for?">Only your own files that are ready are searched.</Empty>
        </Panel>
      ) : result.isPending ? (
        <Loading what="Searching" />
      ) : result.isError ? (
        <Failure error={result.error} retry={() => void result.refetch()} />
      ) : (
        <>
          {result.data.warning && (
            <div className="mb-3">
              <Notice tone="warn">{result.data.warning}.</Notice>
            </div>
          )}
          <p role="status" className="mb-2 text-soft">
            {hits.length === 0 ? '' : `${count(hits.length, 'passage')}${result.data.hasMore ? ' at least' : ''}, best first`}
          </p>
          {hits.length === 0 ? (
            <Panel>
              <Empty title="Nothing fits">
                No passage of your files has to do with “{q}”. Try other words{(batchId ?? fileId) && ', or search in all files'}.
              </Empty>
            </Panel>
          ) : (
            <ol className="grid gap-2" onKeyDown={moveBetweenHits}>
              {hits.map(hit => (
                <li key={`${hit.fileId} ${hit.ordinal}`} className="rounded-lg border border-line bg-panel p-4">
                  <Link
                    to="/files/$fileId"
                    params={{ fileId: hit.fileId }}
                    search={{ tab: 'text', from: hit.charStart, to: hit.charEnd, first: hit.firstOrdinal, last: hit.lastOrdinal, ...(hit.page === null ? {} : { page: hit.page }) }}
                    data-hit-link
                    className="font-medium break-words text-brand hover:underline"
                  >
                    {hit.fileName}
                  </Link>
                  <span className="text-soft">
                    {hit.page !== null && ` · page ${hit.page}`}
                    {hit.headings.length > 0 && ` · ${hit.headings.join(' › ')}`}
                  </span>
                  <p className="mt-1 max-w-prose break-words">{highlighted(hit.snippet, q)}</p>
                  <p className="mt-1 text-xs text-soft">
                    <span title="How well the passage fits, from 0 to 100 percent">{Math.round(hit.score * 100)} %</span>
                    {' · '}
                    {hit.matched.includes('words') ? (hit.matched.includes('meaning') ? 'Words and meaning' : 'Words') : 'Meaning'}
                    {' · '}
                    <Link to="/search" search={before => ({ ...before, q, fileId: hit.fileId })} className="underline">
                      only in this file
                    </Link>
                  </p>
                </li>
              ))}
            </ol>
          )}
          {result.data.hasMore && limit < MOST && (
            <Button className="mt-3" busy={result.isFetching} onClick={() => setLimit(MOST)}>
              Show more
            </Button>
          )}
        </>
      )}
    </>
  );
};

const focusHit = (index: number) => document.querySelectorAll<HTMLElement>('[data-hit-link]')[index]?.focus();

const moveBetweenHits = (event: KeyboardEvent) => {
  if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
  const links = [...document.querySelectorAll<HTMLElement>('[data-hit-link]')];
  const at = links.indexOf(document.activeElement as HTMLElement);
  if (at < 0) return;
  event.preventDefault();
  if (event.key === 'ArrowUp' && at === 0) document.querySelector<HTMLInputElement>('main input[type=search]')?.focus();
  else links[at + (event.key === 'ArrowDown' ? 1 : -1)]?.focus();
};
