/** What the screens for repair and operation ask the server, and the names of its answers. */
import type { components } from '@landfall/client/schema';
import { landfall } from './client';
import type { Scope } from './types';

type Schemas = components['schemas'];
export type QueueStatus = Schemas['QueueStatus'];
export type Hour = QueueStatus['recentHours'][number];
export type Worker = QueueStatus['workers'][number];
export type Queue = QueueStatus['queues'][string];
export type Dashboard = Schemas['Dashboard'];
export type Service = Schemas['Service'];
export type Circuit = Schemas['CircuitView'];
export type Job = Schemas['MaintenanceJob'];
export type JobRun = Schemas['MaintenanceRun'];
export type Webhook = Schemas['WebhookView'];
export type Delivery = Schemas['DeliveryView'];
export type ApiKey = Schemas['ApiKey'];
export type KeyScope = Schemas['KeyScope'];
export type AuditEntry = Schemas['AuditEntry'];
export type Notification = Schemas['Notification'];
export type Quota = Schemas['QuotaView'];
export type Amounts = Quota['bytes'];
export type Tenant = Schemas['TenantView'];
export type Blocker = Schemas['Blocker'];
export type StageLoad = Schemas['StageLoad'];
export type TenantLoad = Schemas['TenantLoad'];
export type Reindex = Schemas['ReindexView'];
export type OperationFilter = Schemas['OperationFilter'];
export type FileProblem = Schemas['OperationError'];
// Servers before these fields are served with their own console, so here the fields are always present.
export type Group = Required<Schemas['DeadLetterGroup']>;
export type Operation = Required<Schemas['OperationView']>;
export type Action = Operation['action'];

export const getGroups = async (scope: Scope, signal: AbortSignal) => {
  const { groups } = await landfall.get('/api/v2/uploads/dlq/groups', { query: { scope, limit: 100 }, signal });
  return groups as Group[];
};

export const getOperations = async (scope: Scope, limit: number, cursor: string | undefined, signal: AbortSignal) => {
  const { operations, nextCursor } = await landfall.get('/api/v2/uploads/operations', { query: { scope, limit, cursor }, signal });
  return { operations: operations as Operation[], nextCursor };
};

export const probeCircuit = (service: Service) => landfall.post('/api/v2/admin/circuits/{service}/probe', { params: { service } });
