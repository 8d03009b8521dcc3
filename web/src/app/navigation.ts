/** The screens as the navigation and the command palette list them. */
import type { IconName } from '../ui/icons';
import type { Role } from './session';

export interface Destination {
  to: string;
  label: string;
  icon: IconName;
  roles: readonly Role[];
  /** Other words that people look for. */
  words?: string;
}

export interface Group {
  label: string;
  items: readonly Destination[];
}

const EVERYONE: readonly Role[] = ['member', 'tenant_admin', 'operator'];
const ADMINS: readonly Role[] = ['tenant_admin', 'operator'];
const OPERATORS: readonly Role[] = ['operator'];

export const GROUPS: readonly Group[] = [
  {
    label: 'Documents',
    items: [
      { to: '/upload', label: 'Upload', icon: 'upload', roles: EVERYONE, words: 'send drop add' },
      { to: '/files', label: 'Files', icon: 'files', roles: EVERYONE, words: 'documents list' },
      { to: '/batches', label: 'Batches', icon: 'batches', roles: EVERYONE, words: 'groups together' },
      { to: '/search', label: 'Search', icon: 'search', roles: EVERYONE, words: 'find question' },
    ],
  },
  {
    label: 'Repair',
    items: [
      { to: '/failures', label: 'Failures', icon: 'failures', roles: EVERYONE, words: 'dead letters errors retry' },
      { to: '/waiting', label: 'Why does it not move?', icon: 'blockers', roles: EVERYONE, words: 'blockers stuck circuits paused queue' },
      { to: '/bulk', label: 'Bulk operations', icon: 'retry', roles: EVERYONE, words: 'running progress stop' },
    ],
  },
  {
    label: 'Operate',
    items: [
      { to: '/overview', label: 'Overview', icon: 'operations', roles: EVERYONE, words: 'dashboard throughput charts latency workers' },
      { to: '/jobs', label: 'Maintenance jobs', icon: 'jobs', roles: OPERATORS, words: 'sweep cleanup schedule run now' },
      { to: '/orphans', label: 'Orphans', icon: 'orphans', roles: EVERYONE, words: 'blobs without owner storage' },
      { to: '/webhooks', label: 'Webhooks', icon: 'webhooks', roles: EVERYONE, words: 'deliveries redeliver' },
      { to: '/quotas', label: 'Quotas', icon: 'quota', roles: EVERYONE, words: 'limits tenants storage' },
      { to: '/embedding', label: 'Re-embedding', icon: 'embedding', roles: OPERATORS, words: 'reindex model' },
      { to: '/audit', label: 'Audit log', icon: 'audit', roles: ADMINS, words: 'who did what' },
      { to: '/settings', label: 'Settings in force', icon: 'settings', roles: OPERATORS, words: 'configuration' },
    ],
  },
  {
    label: 'You',
    items: [
      { to: '/notifications', label: 'Notifications', icon: 'bell', roles: EVERYONE },
      { to: '/keys', label: 'API keys', icon: 'keys', roles: EVERYONE, words: 'tokens programs' },
    ],
  },
];

export const groupsFor = (role: Role): Group[] =>
  GROUPS.map(group => ({ ...group, items: group.items.filter(item => item.roles.includes(role)) })).filter(group => group.items.length > 0);
