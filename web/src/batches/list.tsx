/** The caller's batches. */
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { landfall } from '../api/client';
import { Failure } from '../app/failure';
import { count } from '../app/format';
import { Button, Empty, Heading, Loading, Panel } from '../ui/controls';
import { Ago } from '../ui/time';
import { BatchBadge, outcome } from './summary';

export const BatchesScreen = () => {
  const list = useInfiniteQuery({
    queryKey: ['batches', 'list'],
    queryFn: ({ pageParam, signal }) => landfall.get('/api/v2/uploads/batches', { query: { limit: 50, ...(pageParam ? { cursor: pageParam } : {}) }, signal }),
    initialPageParam: '',
    getNextPageParam: page => page.nextCursor ?? undefined,
  });
  const batches = list.data?.pages.flatMap(page => page.batches) ?? [];
  return (
    <>
      <Heading title="Batches" note="Your files that were uploaded together" />
      <Panel>
        {list.isPending ? (
          <Loading />
        ) : list.isError ? (
          <Failure error={list.error} retry={() => void list.refetch()} />
        ) : batches.length === 0 ? (
          <Empty title="No batches yet">Files that you choose or drop together become a batch.</Empty>
        ) : (
          <ul className="divide-y divide-line">
            {batches.map(batch => (
              <li key={batch.batchId} className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3">
                <Link to="/batches/$batchId" params={{ batchId: batch.batchId }} className="font-medium hover:underline">
                  {count(batch.fileCount, 'file')}
                </Link>
                <BatchBadge status={batch.status} />
                <span className="min-w-0 flex-1 text-soft">{outcome(batch)}</span>
                <span className="text-soft">
                  <Ago at={batch.createdAt} />
                </span>
              </li>
            ))}
          </ul>
        )}
      </Panel>
      {list.hasNextPage && (
        <Button className="mt-3" busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          Show more
        </Button>
      )}
    </>
  );
};
