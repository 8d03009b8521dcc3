/** The server, through the client that everyone else uses too. */
import { Landfall } from '@landfall/client';
import { QueryClient } from '@tanstack/react-query';
import { sessionFetch, sessionState } from '../app/session';

export const landfall = new Landfall({ fetch: sessionFetch });

/** For uploads: only the requests of the browser itself say how many bytes were sent. */
export const uploader = new Landfall({ csrfToken: () => sessionState().session?.csrfToken, concurrentUploads: 3 });

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // The event stream says what changed; this is for what it does not tell of.
      staleTime: 15_000,
      refetchOnWindowFocus: true,
      // The client repeats what may be repeated.
      retry: false,
    },
  },
});
