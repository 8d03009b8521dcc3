/** What a screen shows of a query: that it loads, that it failed, or its answer; and lists that come page by page. */
import { useInfiniteQuery, type InfiniteData, type QueryKey, type UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Failure, messageOf } from '../app/failure';
import { Button, Loading, Notice } from './controls';

type Asked<T> = Pick<UseQueryResult<T>, 'data' | 'error' | 'isError'> & { refetch: () => unknown };

export const Answer = <T,>({ query, what, children }: { query: Asked<T>; what?: string; children: (data: T) => ReactNode }) => {
  const retry = () => void query.refetch();
  if (query.data === undefined) return query.isError ? <Failure error={query.error} retry={retry} /> : <Loading what={what} />;
  return (
    <>
      {query.isError && (
        <div className="mb-3 px-1 pt-1">
          <Notice tone="bad" actions={<Button onClick={retry}>Try again</Button>}>
            This may be out of date. {messageOf(query.error)}
          </Notice>
        </div>
      )}
      {children(query.data)}
    </>
  );
};

/** A list of which the server gives one page at a time. */
export const usePages = <P extends { nextCursor?: string | null }>(
  queryKey: QueryKey,
  load: (cursor: string | undefined, signal: AbortSignal) => Promise<P>,
  options: { refetchInterval?: (pages: P[]) => number | false } = {},
) =>
  useInfiniteQuery<P, Error, InfiniteData<P, string | undefined>, QueryKey, string | undefined>({
    queryKey,
    queryFn: ({ pageParam, signal }) => load(pageParam, signal),
    initialPageParam: undefined,
    getNextPageParam: page => page.nextCursor ?? undefined,
    refetchInterval: query => options.refetchInterval?.(query.state.data?.pages ?? []) ?? false,
  });

export const More = ({ query, what }: { query: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown }; what: string }) =>
  query.hasNextPage && (
    <div className="flex justify-center border-t border-line p-3">
      <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
        Show more {what}
      </Button>
    </div>
  );
