/** The text of a file beside the original, with the place of a hit marked. */
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense, useEffect, useMemo, useRef } from 'react';
import { landfall } from '../api/client';
import type { FileView, Place } from '../api/types';
import { Failure } from '../app/failure';
import { Empty, Loading, Panel } from '../ui/controls';
import { canShow, kindOf } from './kinds';
import { scrollWithin } from './scroll';

const Original = lazy(() => import('./original').then(module => ({ default: module.Original })));

/** More than this would make the page slow; the rest can be downloaded. */
const MAX_SHOWN = 1_000_000;
const BEFORE_MARK = 200_000;

/** A passage has few chunks. */
const MAX_CHUNKS = 10;

interface Marked {
  /** The marked characters of the text. */
  from: number | undefined;
  to: number | undefined;
  page: number | undefined;
  /** The chunks that they are. */
  first: number | undefined;
  last: number | undefined;
}

/** Where the marked chunks are on the pages, if the server knows that. */
const usePlaces = (file: FileView, first: number | undefined, last: number | undefined): Place[] => {
  const chunks = useQuery({
    queryKey: ['file', file.fileId, 'places', first, last, file.readyAt],
    queryFn: ({ signal }) =>
      landfall.get('/api/v2/uploads/files/{fileId}/chunks', {
        params: { fileId: file.fileId },
        query: { limit: Math.min(MAX_CHUNKS, Math.max(1, (last ?? 0) - (first ?? 0) + 1)), cursor: String((first ?? 0) - 1) },
        signal,
      }),
    enabled: first !== undefined && file.status !== 'deleted' && kindOf(file) === 'pdf',
    staleTime: Infinity,
    retry: false,
  });
  return useMemo(() => chunks.data?.chunks.flatMap(chunk => chunk.places) ?? [], [chunks.data]);
};

export const Reading = ({ file, from, to, page, first, last }: { file: FileView } & Marked) => {
  const places = usePlaces(file, first, last);
  const text = useQuery({
    queryKey: ['file', file.fileId, 'text', file.readyAt],
    queryFn: ({ signal }) => landfall.get('/api/v2/uploads/files/{fileId}/text', { params: { fileId: file.fileId }, as: 'text', signal }),
    enabled: file.status !== 'deleted',
    staleTime: Infinity,
    retry: false,
  });
  const marked = useMemo(() => parts(text.data ?? '', from, to), [text.data, from, to]);
  if (file.status === 'deleted') return <Empty title="The file is deleted" />;
  const beside = canShow(file);
  return (
    <div className={beside ? 'grid items-start gap-4 xl:grid-cols-2' : ''}>
      <Panel title="Text" className="min-w-0">
        {text.isPending ? (
          <Loading />
        ) : text.isError ? (
          <Failure error={text.error} retry={() => void text.refetch()} />
        ) : marked.before === '' && marked.mark === '' && marked.after === '' ? (
          <Empty title="The file has no text" />
        ) : (
          <MarkedText {...marked} />
        )}
      </Panel>
      {beside && (
        <Panel title="Original" className="min-w-0">
          <Suspense fallback={<Loading />}>
            <Original file={file} page={page} mark={marked.mark} places={places} />
          </Suspense>
        </Panel>
      )}
    </div>
  );
};

interface Parts {
  before: string;
  mark: string;
  after: string;
  isCut: boolean;
}

/** Splits at the marked place. Its position is counted in characters; strings here are counted in units of UTF-16. */
export const parts = (text: string, from: number | undefined, to: number | undefined): Parts => {
  if (from === undefined || to === undefined || to <= from) return { before: text.slice(0, MAX_SHOWN), mark: '', after: '', isCut: text.length > MAX_SHOWN };
  const start = unitsOf(text, from);
  const end = start + unitsOf(text.slice(start), to - from);
  const first = Math.max(0, start - BEFORE_MARK);
  const last = Math.min(text.length, first + MAX_SHOWN);
  return { before: text.slice(first, start), mark: text.slice(start, end), after: text.slice(end, last), isCut: first > 0 || last < text.length };
};

const unitsOf = (text: string, characters: number): number => {
  let units = 0;
  for (let counted = 0; counted < characters && units < text.length; counted += 1) units += (text.codePointAt(units) ?? 0) > 0xffff ? 2 : 1;
  return units;
};

const MarkedText = ({ before, mark, after, isCut }: Parts) => {
  const place = useRef<HTMLElement>(null);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => scrollWithin(box.current, place.current, 0.4), [mark]);
  return (
    <div ref={box} tabIndex={0} role="region" aria-label="Text of the file" className="max-h-[75dvh] overflow-y-auto p-4">
      {isCut && <p className="mb-2 text-soft">This is a part of the text. Download the result to read all of it.</p>}
      <div className="max-w-prose text-[13.5px] leading-relaxed break-words whitespace-pre-wrap">
        {before}
        {mark && (
          <mark ref={place} id="hit">
            {mark}
          </mark>
        )}
        {after}
      </div>
    </div>
  );
};
