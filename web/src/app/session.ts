/**
 * Who is signed in. The session itself is in a cookie that no script can read; this is what the server says about it.
 *
 * When a session ends, requests wait until the person has signed in again (in another tab, or with a token), so that nothing that
 * was typed or is being uploaded is lost.
 */
import { useSyncExternalStore } from 'react';

export type Role = 'member' | 'tenant_admin' | 'operator';

export interface Session {
  tenantId: string;
  userId: string;
  role: Role;
  expiresAt: string;
  idleUntil: string;
  csrfToken: string;
}

export interface Ways {
  provider: boolean;
  link: boolean;
  token: boolean;
}

export interface LinkPerson {
  code: string;
  tenantId: string;
  userId: string;
  role: Role;
}

export interface SessionState {
  phase: 'starting' | 'unreachable' | 'signed-out' | 'link' | 'signed-in' | 'ended';
  session: Session | null;
  ways: Ways;
  /** What a person should read about the sign-in. */
  reason: string;
  /** Whom a link would sign in. */
  link: LinkPerson | null;
}

const RENEW_MS = 60_000;
const RETRY_MS = 3_000;
const FAILURES: Record<string, string> = {
  SIGN_IN_EXPIRED: 'The sign-in took too long, or was begun in another browser. Sign in again.',
  SIGN_IN_REFUSED: 'The identity provider did not sign you in.',
  ANOTHER_SESSION: 'Another person is signed in in this browser. Sign out first.',
  AUTH_UNAVAILABLE: 'The identity provider does not answer. Try again in a moment.',
};

let state: SessionState = {
  phase: 'starting',
  session: null,
  ways: { provider: false, link: false, token: false },
  reason: '',
  link: null,
};
const listeners = new Set<() => void>();
const channel = new BroadcastChannel('landfall-session');
let waiting: (() => void)[] = [];

const update = (change: Partial<SessionState>) => {
  state = { ...state, ...change };
  for (const listener of listeners) listener();
  if (state.phase !== 'ended') for (const done of waiting.splice(0)) done();
};

export const sessionState = () => state;

export const subscribeToSession = (listener: () => void) => {
  listeners.add(listener);
  return () => void listeners.delete(listener);
};

export const useSessionState = () => useSyncExternalStore(subscribeToSession, sessionState);

/** The session of a screen that is only shown to people who are signed in. */
export const useSession = (): Session => {
  const { session } = useSessionState();
  if (!session) throw new Error('this screen needs a session');
  return session;
};

/** Whose session it is: what is on the screen belongs to this person. */
export const keyOf = (person: { tenantId: string; userId: string } | null) => person && JSON.stringify([person.tenantId, person.userId]);

const messageOf = async (response: Response) => {
  try {
    const body = (await response.json()) as { error: { message: string } };
    return `${body.error.message}.`;
  } catch {
    return `The server returned status ${response.status}.`;
  }
};

const ask = async (): Promise<Session | null> => {
  const response = await fetch('/auth/session');
  if (!response.ok) throw new Error(await messageOf(response));
  const view = (await response.json()) as { session: Session | null; ways: Ways };
  if (JSON.stringify(view.ways) !== JSON.stringify(state.ways)) update({ ways: view.ways });
  return view.session;
};

const signedIn = (session: Session, reason = '') => {
  // What is on this page belongs to the person who was here before.
  if (state.session && keyOf(session) !== keyOf(state.session)) return location.reload();
  update({ phase: 'signed-in', session, reason, link: null });
};

export const sessionEnded = () => {
  if (state.phase === 'signed-in') update({ phase: 'ended', reason: '' });
};

export const showSignIn = (reason: string) => update({ phase: 'signed-out', session: null, reason, link: null });

export const signInWithToken = async (token: string) => {
  let response: Response;
  try {
    response = await fetch('/auth/session', { method: 'POST', headers: { Authorization: `Bearer ${token}` } });
  } catch {
    throw new Error('The server does not respond.');
  }
  if (!response.ok) throw new Error(await messageOf(response));
  signedIn(((await response.json()) as { session: Session }).session);
  channel.postMessage('signed-in');
};

const openLink = async (code: string, confirm: boolean) => {
  const response = await fetch('/auth/links/open', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ code, confirm }),
  });
  if (!response.ok) throw new Error(await messageOf(response));
  return (await response.json()) as Omit<LinkPerson, 'code'> & { session: Session | null };
};

/** Signs in with the link that the person has confirmed. */
export const confirmLink = async () => {
  const { link, session } = state;
  if (!link) return;
  try {
    if (session && keyOf(session) !== keyOf(link)) {
      await logOut(session);
      state = { ...state, session: null };
    }
    const opened = await openLink(link.code, true);
    if (opened.session) signedIn(opened.session);
    channel.postMessage('signed-in');
  } catch (error) {
    showSignIn(error instanceof Error ? error.message : String(error));
  }
};

export const declineLink = () => (state.session ? signedIn(state.session) : showSignIn('You are not signed in.'));

const logOut = async (session: Session) => {
  const response = await fetch('/auth/logout', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-CSRF-Token': session.csrfToken },
    body: '{}',
  });
  if (!response.ok && response.status !== 401) throw new Error(await messageOf(response));
  return response.ok ? ((await response.json()) as { providerUrl: string | null }).providerUrl : null;
};

/** Without an answer it is not certain that the session has ended, so an error leaves the person signed in. */
export const signOut = async () => {
  if (!state.session) return;
  const providerUrl = await logOut(state.session);
  channel.postMessage('signed-out');
  showSignIn('You are signed out.');
  if (providerUrl) location.assign(providerUrl);
};

const signedInElsewhere = async () => {
  if (state.phase !== 'ended') return;
  const session = await ask().catch(() => null);
  if (session) signedIn(session);
};

/** Waits while the session has ended. Rejects when the person has left. */
export const whenSignedIn = async (): Promise<Session> => {
  while (state.phase === 'ended') await new Promise<void>(done => waiting.push(done));
  if (!state.session) throw new DOMException('You are not signed in', 'AbortError');
  return state.session;
};

/** As `fetch`, with the session: a request that finds it ended is sent again once the person has signed in. */
export const sessionFetch: typeof fetch = async (input, init) => {
  for (;;) {
    const session = await whenSignedIn();
    const request = new Request(input, init);
    if (request.method !== 'GET' && request.method !== 'HEAD') request.headers.set('X-CSRF-Token', session.csrfToken);
    const response = await fetch(request.clone());
    if (response.status !== 401) return response;
    if (state.session === session) sessionEnded();
  }
};

/** A person who types or clicks is there: the idle time begins again. A page that only refreshes itself does not count. */
let renewedAt = performance.now();
const isThere = async () => {
  if (state.phase !== 'signed-in' || performance.now() - renewedAt < RENEW_MS) return;
  renewedAt = performance.now();
  const before = state.session;
  const session = await ask().catch(() => before);
  if (state.session !== before) return;
  if (!session) sessionEnded();
  else signedIn(session, state.reason);
};

export const beginSession = async (): Promise<void> => {
  const given = new URLSearchParams(location.hash.slice(1));
  let session: Session | null;
  try {
    session = await ask();
  } catch (error) {
    const message = error instanceof TypeError ? 'The server does not respond.' : String((error as Error).message);
    update({ phase: 'unreachable', reason: message });
    setTimeout(() => void beginSession(), RETRY_MS);
    return;
  }
  // The code of a link must not stay in the address bar and the history.
  if (location.hash) history.replaceState(history.state, '', location.pathname + location.search);
  if (given.has('signed-in') && session) {
    channel.postMessage('signed-in');
    window.close();
  }
  const code = given.get('open');
  if (code) {
    try {
      const { tenantId, userId, role } = await openLink(code, false);
      return update({ phase: 'link', session, link: { code, tenantId, userId, role }, reason: '' });
    } catch (error) {
      const reason = error instanceof TypeError ? 'The server does not respond.' : String((error as Error).message);
      return session ? signedIn(session, reason) : showSignIn(reason);
    }
  }
  const failed = given.get('sign-in-failed');
  const failure = failed === null ? '' : (FAILURES[failed] ?? 'The sign-in failed.');
  if (session) signedIn(session, failure);
  else showSignIn(failure || 'You are not signed in.');
};

export const dismissReason = () => update({ reason: '' });

channel.onmessage = event => {
  if (event.data === 'signed-in') void signedInElsewhere();
  else if (state.session) showSignIn('You are signed out.');
};
addEventListener('focus', () => void signedInElsewhere());
for (const kind of ['pointerdown', 'keydown']) addEventListener(kind, () => void isThere(), { passive: true });
addEventListener('hashchange', () => {
  if (location.hash.startsWith('#open=')) location.reload();
});
