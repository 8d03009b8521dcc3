/** The chunks of a file: what is found as one. */
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { landfall } from '../api/client';
import type { FileView } from '../api/types';
import { Failure } from '../app/failure';
import { count, number } from '../app/format';
import { Button, Empty, Loading, Panel } from '../ui/controls';

export const Chunks = ({ file }: { file: FileView }) => {
  const list = useInfiniteQuery({
    queryKey: ['file', file.fileId, 'chunks'],
    queryFn: ({ pageParam, signal }) =>
      landfall.get('/api/v2/uploads/files/{fileId}/chunks', { params: { fileId: file.fileId }, query: { limit: 50, ...(pageParam ? { cursor: pageParam } : {}) }, signal }),
    initialPageParam: '',
    getNextPageParam: page => page.nextCursor ?? undefined,
    enabled: file.status !== 'deleted',
  });
  const chunks = list.data?.pages.flatMap(page => page.chunks) ?? [];
  if (file.status === 'deleted') return <Empty title="The file is deleted" />;
  if (list.isPending) return <Loading />;
  if (list.isError) return <Failure error={list.error} retry={() => void list.refetch()} />;
  return (
    <Panel title={file.chunkCount === null ? 'Chunks' : count(file.chunkCount, 'chunk')}>
      {chunks.length === 0 ? (
        <Empty title="There are no chunks">{file.status === 'ready' ? 'The file has no text.' : 'They are made after the text was extracted.'}</Empty>
      ) : (
        <ol className="divide-y divide-line">
          {chunks.map(chunk => (
            <li key={chunk.ordinal} className="px-4 py-3">
              <div className="flex flex-wrap gap-x-3 text-xs text-soft">
                <span className="font-semibold text-ink">{number(chunk.ordinal + 1)}</span>
                {chunk.page !== null && <span>page {chunk.page}</span>}
                {chunk.headings.length > 0 && <span>{chunk.headings.join(' › ')}</span>}
                <span>{count(chunk.tokens, 'token')}</span>
                <Link to="/files/$fileId" params={{ fileId: file.fileId }} search={{ tab: 'text', from: chunk.charStart, to: chunk.charEnd, first: chunk.ordinal, last: chunk.ordinal, ...(chunk.page === null ? {} : { page: chunk.page }) }} className="text-brand underline">
                  Show in the text
                </Link>
              </div>
              <p className="mt-1 max-w-prose break-words whitespace-pre-wrap">{chunk.text}</p>
            </li>
          ))}
        </ol>
      )}
      {list.hasNextPage && (
        <div className="border-t border-line p-3">
          <Button busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            Show more
          </Button>
        </div>
      )}
    </Panel>
  );
};
