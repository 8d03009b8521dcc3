/**
 * What is being uploaded. It is outside of React, so uploads go on whatever screen is shown.
 *
 * Several files that are chosen together become one batch. Three are sent at a time; each can be paused, resumed and cancelled.
 * A lost network only delays them.
 */
import { LandfallError, UnauthenticatedError, type UnfinishedUpload, type Upload, type UploadState } from '@landfall/client';
import { useSyncExternalStore } from 'react';
import { landfall, queries, uploader } from '../api/client';
import { randomKey } from '../app/ids';
import { sessionEnded, sessionFetch, sessionState, subscribeToSession, whenSignedIn } from '../app/session';
import { toast } from '../ui/toasts';
import type { Chosen } from './choose';

export type ItemState = 'waiting' | 'uploading' | 'paused' | 'offline' | 'done' | 'failed' | 'cancelled';

export interface Item {
  id: number;
  path: string;
  size: number;
  state: ItemState;
  sent: number;
  /** Bytes in a second. */
  speed: number;
  /** In milliseconds; null while it is not known. */
  timeLeft: number | null;
  error: string | null;
  fileId: string | null;
  batchId: string | null;
}

interface Task {
  item: Item;
  file: File;
  upload: Upload | null;
  /** Its batch is not open yet. */
  isHeld: boolean;
}

const PARALLEL = 3;
const MAX_PER_BATCH = 10_000;
const NOTIFY_MS = 200;
const MAX_UNFINISHED = 50;
const TUS = { 'Tus-Resumable': '1.0.0' };

let tasks: Task[] = [];
let unfinished: UnfinishedUpload[] = [];
let snapshot: { items: Item[]; unfinished: UnfinishedUpload[] } = { items: [], unfinished: [] };
let timer: ReturnType<typeof setTimeout> | undefined;
let nextId = 1;
const listeners = new Set<() => void>();

const publish = () => {
  timer = undefined;
  snapshot = { items: tasks.map(task => task.item), unfinished };
  for (const listener of listeners) listener();
};

/** Progress comes many times a second; the screen changes five times. */
const change = (task: Task, to: Partial<Item>) => {
  task.item = { ...task.item, ...to };
  timer ??= setTimeout(publish, NOTIFY_MS);
};

export const useUploads = () =>
  useSyncExternalStore(
    listener => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    () => snapshot,
  );

export const isActive = (item: Item) => !['done', 'failed', 'cancelled'].includes(item.state);

/** Adds files and begins to send them. */
export const addUploads = async (chosen: Chosen[]) => {
  if (chosen.length === 0) return;
  if (chosen.length > MAX_PER_BATCH) {
    toast(`At most ${MAX_PER_BATCH.toLocaleString('en')} files can be uploaded together. Choose fewer.`, { tone: 'bad' });
    return;
  }
  const added = chosen.map(({ file, path }): Task => {
    // An upload that an earlier visit began goes on in its own batch.
    const begun = unfinished.find(one => one.name === file.name && one.size === file.size);
    if (begun) unfinished = unfinished.filter(one => one !== begun);
    const item: Item = { id: nextId++, path, size: file.size, state: 'waiting', sent: 0, speed: 0, timeLeft: null, error: null, fileId: null, batchId: begun?.batchId ?? null };
    return { file, upload: null, isHeld: begun === undefined, item };
  });
  tasks = [...tasks, ...added];
  publish();
  const fresh = added.filter(task => task.isHeld);
  if (fresh.length > 1) {
    try {
      const { batchId } = await landfall.post('/api/v2/uploads/batches', { body: { fileCount: fresh.length }, idempotencyKey: randomKey() });
      for (const task of fresh) change(task, { batchId });
    } catch (error) {
      for (const task of fresh) change(task, { state: 'failed', error: messageOf(error) });
    }
  }
  for (const task of fresh) task.isHeld = false;
  pump();
};

const pump = () => {
  const running = tasks.filter(({ item }) => item.state === 'uploading' || item.state === 'offline').length;
  for (const task of tasks.filter(({ item, isHeld }) => item.state === 'waiting' && !isHeld).slice(0, Math.max(0, PARALLEL - running))) void run(task);
};

const STATES: Record<UploadState, ItemState> = {
  queued: 'uploading',
  sending: 'uploading',
  waiting: 'offline',
  paused: 'paused',
  uploaded: 'uploading',
  aborted: 'cancelled',
  failed: 'failed',
};

const run = async (task: Task) => {
  const { item, file } = task;
  change(task, { state: 'uploading', error: null });
  const upload = (task.upload = uploader.upload(file, {
    name: file.name,
    resume: true,
    ...(item.batchId ? { batchId: item.batchId } : {}),
    ...(item.path === file.name ? {} : { attributes: { path: item.path } }),
  }));
  upload.on('progress', progress => {
    const state = STATES[progress.state];
    if (isActive(task.item) && state !== 'failed' && state !== 'cancelled')
      change(task, { state, sent: progress.sent, speed: progress.speed ?? 0, timeLeft: progress.timeLeft === undefined ? null : progress.timeLeft * 1000 });
  });
  try {
    const view = await upload.uploaded();
    change(task, { state: 'done', sent: item.size, fileId: view.fileId });
    void queries.invalidateQueries({ queryKey: ['files'] });
  } catch (error) {
    if (error instanceof UnauthenticatedError && task.item.state !== 'cancelled') {
      // The session has ended: the upload goes on when the person has signed in again.
      sessionEnded();
      change(task, { state: 'offline' });
      await whenSignedIn().then(
        () => run(task),
        () => change(task, { state: 'cancelled' }),
      );
      return;
    }
    if (task.item.state !== 'cancelled') change(task, { state: 'failed', error: messageOf(error) });
  }
  pump();
};

const messageOf = (error: unknown) =>
  error instanceof LandfallError || error instanceof Error ? `${error.message.replace(/\.$/, '')}.` : String(error);

const find = (id: number) => tasks.find(task => task.item.id === id);

export const pauseUpload = (id: number) => {
  const task = find(id);
  if (!task || !isActive(task.item)) return;
  task.upload?.pause();
  change(task, { state: 'paused', speed: 0, timeLeft: null });
  pump();
};

export const resumeUpload = (id: number) => {
  const task = find(id);
  if (!task || task.item.state !== 'paused') return;
  if (task.upload) {
    task.upload.resume();
    change(task, { state: 'uploading' });
  } else {
    change(task, { state: 'waiting' });
    pump();
  }
};

export const cancelUpload = async (id: number) => {
  const task = find(id);
  if (!task || !isActive(task.item)) return;
  change(task, { state: 'cancelled', speed: 0, timeLeft: null });
  await task.upload?.abort().catch(() => {
    // What it left behind expires by itself.
  });
  pump();
};

/** Sends a file again that could not be sent. */
export const retryUpload = (id: number) => {
  const task = find(id);
  if (!task || task.item.state !== 'failed') return;
  task.upload = null;
  change(task, { state: 'waiting', error: null, sent: 0 });
  pump();
};

export const pauseAll = () => tasks.filter(({ item }) => isActive(item) && item.state !== 'paused').forEach(({ item }) => pauseUpload(item.id));
export const resumeAll = () => tasks.filter(({ item }) => item.state === 'paused').forEach(({ item }) => resumeUpload(item.id));
export const cancelAll = () => Promise.all(tasks.filter(({ item }) => isActive(item)).map(({ item }) => cancelUpload(item.id)));

/** Takes what has ended off the list. */
export const dismissEnded = () => {
  tasks = tasks.filter(({ item }) => isActive(item));
  publish();
};

/** Looks for uploads that an earlier visit of this page began and did not finish. */
export const findUnfinished = async () => {
  // The notes of tus-js-client. Without any there is nothing to load.
  if (!Object.keys(localStorage).some(key => key.startsWith('tus::'))) return;
  const noted = (await uploader.unfinishedUploads()).slice(-MAX_UNFINISHED);
  // Another person may have begun it in this browser, or it has ended in another way: then the server has none for this person.
  const states = await Promise.all(noted.map(async one => ({ one, isThere: (await sessionFetch(one.uploadUrl, { method: 'HEAD', headers: TUS })).ok })));
  const found = states.filter(({ isThere }) => isThere).map(({ one }) => one);
  const sending = new Set(tasks.filter(({ item }) => isActive(item)).map(({ file }) => `${file.name} ${file.size}`));
  unfinished = found.filter(one => !sending.has(`${one.name} ${one.size}`));
  publish();
};

export const discardUnfinished = async (one: UnfinishedUpload) => {
  await sessionFetch(one.uploadUrl, { method: 'DELETE', headers: TUS });
  await one.forget();
  unfinished = unfinished.filter(other => other.uploadUrl !== one.uploadUrl);
  publish();
};

// A page that is closed cannot send the rest.
addEventListener('beforeunload', event => {
  if (tasks.some(({ item }) => isActive(item) && item.state !== 'paused')) event.preventDefault();
});

// What one person was sending is not for the next.
let sender: string | null = null;
subscribeToSession(() => {
  const { phase, session } = sessionState();
  const person = session && `${session.tenantId} ${session.userId}`;
  if (phase === 'signed-in' && person !== sender) {
    sender = person;
    void findUnfinished().catch(() => {});
  }
  if (phase === 'signed-out' && sender !== null) {
    sender = null;
    for (const { upload } of tasks) upload?.pause();
    tasks = [];
    unfinished = [];
    publish();
  }
});
