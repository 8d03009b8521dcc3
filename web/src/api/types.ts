/** The types of the API that the console uses, by short names. */
import type { components } from '@landfall/client/schema';

type Schemas = components['schemas'];
export type FileView = Schemas['FileView'];
export type FileStatus = FileView['status'];
export type Stage = NonNullable<FileView['nextStage']>;
export type HistoryEntry = Schemas['HistoryEntry'];
export type Place = Schemas['Place'];
export type BatchView = Schemas['BatchView'];
export type Scope = 'own' | 'tenant' | 'all';

const ENDED: readonly string[] = ['ready', 'failed', 'cancelled', 'deleted'];
/** Nothing happens to the file any more unless a person asks for it. */
export const hasEnded = (status: string) => ENDED.includes(status);
export const STATES: readonly FileStatus[] = ['registered', 'uploaded', 'queued', 'scanning', 'extracting', 'chunking', 'embedding', 'ready', 'failed', 'cancelled'];
export const STAGES: readonly Stage[] = ['scan', 'extract', 'chunk', 'embed'];
