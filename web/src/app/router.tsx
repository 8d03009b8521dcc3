/** The screens and their addresses. What a screen shows is in its address, so that a link shows the same. */
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect, retainSearchParams } from '@tanstack/react-router';
import type { Scope } from '../api/types';
import { Loading } from '../ui/controls';
import { Failure, NotFound } from './failure';
import { Shell } from './shell';

type Search = Record<string, unknown>;
const text = (value: unknown) => (typeof value === 'string' && value !== '' ? value : typeof value === 'number' ? String(value) : undefined);
const flag = (value: unknown) => (value === true || value === 'true' ? true : undefined);
const whole = (value: unknown) => (Number.isInteger(Number(value)) && value !== '' && value != null ? Number(value) : undefined);
const one = <T extends string>(value: unknown, known: readonly T[]) => (known.includes(value as T) ? (value as T) : undefined);

const root = createRootRoute({
  component: Shell,
  validateSearch: (search: Search): { scope?: Scope } => {
    const scope = one(search.scope, ['own', 'tenant', 'all'] as const);
    return scope ? { scope } : {};
  },
  search: { middlewares: [retainSearchParams(['scope'])] },
  notFoundComponent: NotFound,
  errorComponent: Failure,
});

/** Which files a list shows. */
export interface FileFilter {
  status?: string;
  q?: string;
  batchId?: string;
  code?: string;
  owner?: string;
  tenantId?: string;
  createdAfter?: string;
  createdBefore?: string;
  warnings?: true;
}

export interface FileListSearch extends FileFilter {
  sort?: 'createdAt' | 'fileName' | 'size';
  order?: 'asc' | 'desc';
}

const defined = <T extends object>(values: T): T => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as T;

const index = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/files', replace: true });
  },
});
const upload = createRoute({ getParentRoute: () => root, path: '/upload', component: lazyRouteComponent(() => import('../upload/screen'), 'UploadScreen') });
const files = createRoute({
  getParentRoute: () => root,
  path: '/files',
  validateSearch: (search: Search): FileListSearch =>
    defined({
      status: text(search.status),
      q: text(search.q),
      batchId: text(search.batchId),
      code: text(search.code),
      owner: text(search.owner),
      tenantId: text(search.tenantId),
      createdAfter: text(search.createdAfter),
      createdBefore: text(search.createdBefore),
      warnings: flag(search.warnings),
      sort: one(search.sort, ['createdAt', 'fileName', 'size'] as const),
      order: one(search.order, ['asc', 'desc'] as const),
    }),
  component: lazyRouteComponent(() => import('../files/screen'), 'FilesScreen'),
});

/** Which part of a file is shown, and the place in its text that is marked. */
export interface FileSearch {
  tab?: 'timeline' | 'text' | 'chunks' | 'json';
  from?: number;
  to?: number;
  page?: number;
  /** The chunks that are marked. */
  first?: number;
  last?: number;
}

const file = createRoute({
  getParentRoute: () => root,
  path: '/files/$fileId',
  validateSearch: (search: Search): FileSearch =>
    defined({
      tab: one(search.tab, ['timeline', 'text', 'chunks', 'json'] as const),
      from: whole(search.from),
      to: whole(search.to),
      page: whole(search.page),
      first: whole(search.first),
      last: whole(search.last),
    }),
  component: lazyRouteComponent(() => import('../file/screen'), 'FileScreen'),
});
const batches = createRoute({ getParentRoute: () => root, path: '/batches', component: lazyRouteComponent(() => import('../batches/list'), 'BatchesScreen') });
const batch = createRoute({ getParentRoute: () => root, path: '/batches/$batchId', component: lazyRouteComponent(() => import('../batches/batch'), 'BatchScreen') });

export interface SearchSearch {
  q?: string;
  batchId?: string;
  fileId?: string;
}

const search = createRoute({
  getParentRoute: () => root,
  path: '/search',
  validateSearch: (given: Search): SearchSearch => defined({ q: text(given.q), batchId: text(given.batchId), fileId: text(given.fileId) }),
  component: lazyRouteComponent(() => import('../search/screen'), 'SearchScreen'),
});
const failures = createRoute({ getParentRoute: () => root, path: '/failures', component: lazyRouteComponent(() => import('../failures/screen'), 'FailuresScreen') });
const blockers = createRoute({ getParentRoute: () => root, path: '/waiting', component: lazyRouteComponent(() => import('../blockers/screen'), 'BlockersScreen') });
const bulk = createRoute({ getParentRoute: () => root, path: '/bulk', component: lazyRouteComponent(() => import('../bulk/screen'), 'BulkScreen') });
const overview = createRoute({
  getParentRoute: () => root,
  path: '/overview',
  validateSearch: (given: Search): { days?: 7 } => (Number(given.days) === 7 ? { days: 7 } : {}),
  component: lazyRouteComponent(() => import('../operations/overview'), 'OverviewScreen'),
});
const jobs = createRoute({ getParentRoute: () => root, path: '/jobs', component: lazyRouteComponent(() => import('../operations/jobs'), 'JobsScreen') });
const orphans = createRoute({ getParentRoute: () => root, path: '/orphans', component: lazyRouteComponent(() => import('../operations/orphans'), 'OrphansScreen') });
const webhooks = createRoute({ getParentRoute: () => root, path: '/webhooks', component: lazyRouteComponent(() => import('../operations/webhooks'), 'WebhooksScreen') });
const webhook = createRoute({ getParentRoute: () => root, path: '/webhooks/$webhookId', component: lazyRouteComponent(() => import('../operations/webhook'), 'WebhookScreen') });
const notifications = createRoute({ getParentRoute: () => root, path: '/notifications', component: lazyRouteComponent(() => import('../operations/notifications'), 'NotificationsScreen') });
const quotas = createRoute({ getParentRoute: () => root, path: '/quotas', component: lazyRouteComponent(() => import('../operations/quotas'), 'QuotasScreen') });
const keys = createRoute({ getParentRoute: () => root, path: '/keys', component: lazyRouteComponent(() => import('../operations/keys'), 'KeysScreen') });
const audit = createRoute({
  getParentRoute: () => root,
  path: '/audit',
  validateSearch: (given: Search): { actor?: string; action?: string; outcome?: string } =>
    defined({ actor: text(given.actor), action: text(given.action), outcome: text(given.outcome) }),
  component: lazyRouteComponent(() => import('../operations/audit'), 'AuditScreen'),
});
const settings = createRoute({ getParentRoute: () => root, path: '/settings', component: lazyRouteComponent(() => import('../operations/settings'), 'SettingsScreen') });
const embedding = createRoute({ getParentRoute: () => root, path: '/embedding', component: lazyRouteComponent(() => import('../operations/embedding'), 'EmbeddingScreen') });

// The server serves the console at `/` too.
if (location.pathname === '/') history.replaceState(null, '', `/console/${location.search}${location.hash}`);

export const router = createRouter({
  routeTree: root.addChildren([
    index, upload, files, file, batches, batch, search, failures, blockers, bulk, overview, jobs, orphans, webhooks, webhook, notifications, quotas,
    keys, audit, settings, embedding,
  ]),
  basepath: '/console',
  defaultPreload: 'intent',
  defaultPendingComponent: () => <Loading />,
  defaultErrorComponent: Failure,
  scrollRestoration: true,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
