import './styles.css';
import './app/theme';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { queries } from './api/client';
import { beginFreshness } from './app/freshness';
import { beginLive } from './app/live';
import { router } from './app/router';
import { beginSession, keyOf, sessionState, subscribeToSession } from './app/session';
import { beginStyles } from './app/styles';

beginStyles();
beginLive();
beginFreshness();
void beginSession();

// What one person saw is not for the next.
let seenBy: string | null = null;
subscribeToSession(() => {
  const key = keyOf(sessionState().session);
  if (seenBy !== null && key !== seenBy) queries.clear();
  seenBy = key;
});

const root = document.getElementById('root');
if (!root) throw new Error('the page has no root');
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
