/** The list of files: live, of any length, filtered and sorted by the server. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useCallback, useEffect, useRef, useState, type KeyboardEvent } from 'react';
import { landfall } from '../api/client';
import { Failure } from '../app/failure';
import { number } from '../app/format';
import { SCOPE_NAMES, useScope } from '../app/scope';
import { Button, Empty, Heading, Loading } from '../ui/controls';
import { chooseFiles } from '../upload/choose';
import { Blocked } from '../blockers/banner';
import { BulkBar, type Selection } from './bulk-bar';
import { isFiltered, queryOf } from './filter';
import { Filters, type Counts } from './filters';
import { useFilePages } from './pages';
import { FileRow, GRID } from './row';

const NONE: Selection = { kind: 'some', ids: new Set() };

export const FilesScreen = () => {
  const search = useSearch({ from: '/files' });
  const scope = useScope();
  const pages = useFilePages(search, scope);
  const { status: _, ...others } = search;
  const [selection, setSelection] = useState<Selection>(NONE);
  const filterKey = JSON.stringify([search, scope]);
  useEffect(() => setSelection(NONE), [filterKey]);

  const counts = (filter: typeof search) => ({
    queryKey: ['counts', queryOf(filter, scope)],
    queryFn: ({ signal }: { signal: AbortSignal }): Promise<Counts> => landfall.get('/api/v2/uploads/files/counts', { query: queryOf(filter, scope), signal }),
    placeholderData: keepPreviousData,
  });
  const byState = useQuery(counts(others)).data;
  const matching = useQuery(counts(search)).data;

  return (
    <>
      <Heading
        title="Files"
        note={matching ? `${SCOPE_NAMES[scope]}: ${number(matching.total)}${matching.isCapped ? '+' : ''} ${isFiltered(search) ? 'match' : matching.total === 1 ? 'file' : 'files'}` : SCOPE_NAMES[scope]}
        actions={
          <Button look="main" icon="upload" onClick={() => chooseFiles('files')}>
            Upload
          </Button>
        }
      />
      <Blocked />
      <Filters search={search} scope={scope} counts={byState} />
      <BulkBar selection={selection} matching={matching ?? null} filter={search} scope={scope} onSelectAll={() => setSelection({ kind: 'all' })} onClear={() => setSelection(NONE)} />
      {pages.error ? (
        <Failure error={pages.error} retry={pages.retry} />
      ) : pages.isPending && pages.count === 0 ? (
        <Loading what="Loading files" />
      ) : pages.count === 0 && !pages.hasMore ? (
        <NothingHere filtered={isFiltered(search)} />
      ) : (
        <List pages={pages} total={matching?.total} selection={selection} setSelection={setSelection} withOwner={scope !== 'own'} />
      )}
    </>
  );
};

const NothingHere = ({ filtered }: { filtered: boolean }) => (
  <div className="rounded-lg border border-line bg-panel">
    {filtered ? (
      <Empty title="No file matches the filters" actions={<Link to="/files" className="text-brand underline">Clear all filters</Link>} />
    ) : (
      <Empty
        title="No files yet"
        actions={
          <>
            <Button look="main" icon="upload" onClick={() => chooseFiles('files')}>
              Choose files
            </Button>
            <Button icon="folder" onClick={() => chooseFiles('folder')}>
              Choose a folder
            </Button>
          </>
        }
      >
        Drop documents anywhere on this page. They become searchable in moments.
      </Empty>
    )}
  </div>
);

const List = ({
  pages,
  total,
  selection,
  setSelection,
  withOwner,
}: {
  pages: ReturnType<typeof useFilePages>;
  total: number | undefined;
  selection: Selection;
  setSelection: (change: Selection | ((before: Selection) => Selection)) => void;
  withOwner: boolean;
}) => {
  const frame = useRef<HTMLDivElement>(null);
  const last = useRef<string | null>(null);
  const [top, setTop] = useState(0);
  useEffect(() => {
    const measure = () => setTop(frame.current ? frame.current.getBoundingClientRect().top + scrollY : 0);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, []);
  const rows = useWindowVirtualizer({
    count: pages.count + (pages.hasMore ? 1 : 0),
    estimateSize: () => 44,
    overscan: 12,
    scrollMargin: top,
    getItemKey: index => pages.row(index)?.fileId ?? index,
  });
  const visible = rows.getVirtualItems();
  const [first, final] = [visible[0]?.index ?? 0, visible.at(-1)?.index ?? 0];
  useEffect(() => pages.show(first, final));

  const select = useCallback(
    (id: string, range: boolean) => {
      setSelection(before => {
        const ids = new Set(before.kind === 'some' ? before.ids : []);
        const from = range && last.current ? visible.findIndex(row => pages.row(row.index)?.fileId === last.current) : -1;
        const to = visible.findIndex(row => pages.row(row.index)?.fileId === id);
        if (from >= 0 && to >= 0) for (const row of visible.slice(Math.min(from, to), Math.max(from, to) + 1)) ids.add(pages.row(row.index)?.fileId ?? id);
        else if (ids.has(id)) ids.delete(id);
        else ids.add(id);
        last.current = id;
        return { kind: 'some', ids };
      });
    },
    [pages, setSelection, visible],
  );
  const loaded = visible.map(row => pages.row(row.index)?.fileId).filter(id => id !== undefined);
  const areAllSelected = selection.kind === 'all' || (loaded.length > 0 && loaded.every(id => selection.ids.has(id)));

  const press = (event: KeyboardEvent) => {
    const row = (event.target as HTMLElement).closest<HTMLElement>('[data-row]');
    if (!row || !['ArrowDown', 'ArrowUp', 'x'].includes(event.key) || (event.target as HTMLElement).closest('[role=menu]')) return;
    const index = Number(row.dataset.row);
    event.preventDefault();
    if (event.key === 'x') {
      const id = pages.row(index)?.fileId;
      if (id) select(id, false);
      return;
    }
    const next = index + (event.key === 'ArrowDown' ? 1 : -1);
    rows.scrollToIndex(next, { align: 'auto' });
    requestAnimationFrame(() => frame.current?.querySelector<HTMLElement>(`[data-row="${next}"] [data-row-link]`)?.focus());
  };

  return (
    <div role="table" aria-label="Files" aria-rowcount={(total ?? pages.count) + 1} className="rounded-lg border border-line bg-panel" onKeyDown={press}>
      <div role="rowgroup">
        <div role="row" aria-rowindex={1} className={`${GRID} border-b border-line px-3 py-2 text-xs font-semibold text-soft sm:px-4`}>
          <span role="columnheader">
            <input
              type="checkbox"
              aria-label="Select the files on this screen"
              checked={areAllSelected}
              onChange={() => setSelection(areAllSelected ? NONE : { kind: 'some', ids: new Set(loaded) })}
              className="size-4 accent-(--brand)"
            />
          </span>
          <span role="columnheader">Name</span>
          <span role="columnheader" className="hidden sm:block">
            State
          </span>
          <span role="columnheader" className="hidden text-right sm:block">
            Size
          </span>
          <span role="columnheader" className="hidden text-right sm:block">
            Created
          </span>
          <span role="columnheader">
            <span className="sr-only">Actions</span>
          </span>
        </div>
      </div>
      <div ref={frame} role="rowgroup" className="relative" style={{ height: rows.getTotalSize() }}>
        {visible.map(item => {
          const file = pages.row(item.index);
          return (
            <div key={item.key} ref={rows.measureElement} data-index={item.index} role="presentation" className="absolute inset-x-0" style={{ transform: `translateY(${item.start - rows.options.scrollMargin}px)` }}>
              {file ? (
                <FileRow file={file} index={item.index} selected={selection.kind === 'all' || selection.ids.has(file.fileId)} onSelect={select} withOwner={withOwner} />
              ) : (
                <div role="row" className="h-11 border-b border-line px-4 py-3">
                  <div role="cell" className="h-3 w-1/3 rounded bg-sunken">
                    <span className="sr-only">Loading</span>
                  </div>
                </div>
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
};
