/**
 * The events, once for all tabs of this browser: browsers allow only six connections to a server over HTTP/1.1, and each stream holds
 * one. The tab that holds the lock reads the stream and passes the events on; when it is closed, another tab gets the lock and
 * continues after the last event.
 */
import { useSyncExternalStore } from 'react';
import type { StreamEvent } from '@landfall/client';
import { landfall } from '../api/client';
import { keyOf, sessionState, subscribeToSession } from './session';

/** What is known of the connection: `live` while events arrive by themselves. */
export type Connection = 'connecting' | 'live' | 'offline';

type Message = { key: string; kind: 'event'; event: StreamEvent } | { key: string; kind: 'connection'; connection: Connection } | { key: string; kind: 'ask' };

const PATIENCE_MS = 2_000;
const channel = new BroadcastChannel('landfall-events');
const eventListeners = new Set<(event: StreamEvent) => void>();
const connectionListeners = new Set<() => void>();
let connection: Connection = 'connecting';
let lastId: number | undefined;
let stop: AbortController | undefined;
let followed: string | null = null;
let isLeader = false;

const setConnection = (changed: Connection) => {
  if (connection === changed) return;
  connection = changed;
  for (const listener of connectionListeners) listener();
};

const dispatch = (event: StreamEvent) => {
  if (typeof event.id === 'number') lastId = event.id;
  for (const listener of eventListeners) listener(event);
};

const tell = (message: Message) => channel.postMessage(message);

channel.onmessage = ({ data }: MessageEvent<Message>) => {
  if (data.key !== followed) return;
  if (data.kind === 'ask') {
    if (isLeader) tell({ key: data.key, kind: 'connection', connection });
  } else if (data.kind === 'connection') setConnection(data.connection);
  else dispatch(data.event);
};

/** The widest scope that the person may see: the screens pick what they show. */
const scopeOf = () => ({ member: 'own', tenant_admin: 'tenant', operator: 'all' } as const)[sessionState().session?.role ?? 'member'];

const read = async (key: string, signal: AbortSignal) => {
  isLeader = true;
  // A stream is opened again at once when it ends as it should; only a server that does not come back is worth a word.
  let patience: ReturnType<typeof setTimeout> | undefined;
  const report = (changed: Connection) => {
    clearTimeout(patience);
    patience = undefined;
    setConnection(changed);
    tell({ key, kind: 'connection', connection: changed });
  };
  const lost = () => (patience ??= setTimeout(() => report('offline'), PATIENCE_MS));
  try {
    const stream = landfall.events({
      scope: scopeOf(),
      ...(lastId === undefined ? {} : { after: lastId }),
      signal,
      onOpen: () => report('live'),
      onLost: () => lost(),
    });
    for await (const event of stream) {
      dispatch(event);
      tell({ key, kind: 'event', event });
    }
  } finally {
    clearTimeout(patience);
    isLeader = false;
  }
};

const follow = (key: string) => {
  followed = key;
  lastId = undefined;
  setConnection('connecting');
  const controller = (stop = new AbortController());
  tell({ key, kind: 'ask' });
  const lead = () => read(key, controller.signal).catch(() => setConnection('offline'));
  // Without https there are no locks, and each tab reads a stream of its own.
  if (!('locks' in navigator)) return void lead();
  navigator.locks.request(`landfall-events ${key}`, { signal: controller.signal }, lead).catch(() => {
    // Aborted: the person signed out.
  });
};

const adapt = () => {
  const { phase, session } = sessionState();
  const key = phase === 'signed-in' ? keyOf(session) : null;
  if (key === followed) return;
  // A session that has ended may be renewed by the same person: the stream ends by itself, and continues then.
  if (phase === 'ended') return;
  stop?.abort();
  followed = null;
  if (key) follow(key);
};

export const beginLive = () => {
  subscribeToSession(adapt);
  adapt();
};

export const onEvent = (listener: (event: StreamEvent) => void) => {
  eventListeners.add(listener);
  return () => void eventListeners.delete(listener);
};

export const useConnection = () =>
  useSyncExternalStore(
    listener => {
      connectionListeners.add(listener);
      return () => void connectionListeners.delete(listener);
    },
    () => connection,
  );
