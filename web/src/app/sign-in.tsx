/** Signing in, and signing in again when the session has ended. */
import { Dialog } from 'radix-ui';
import { useEffect, useRef, useState, type FormEvent } from 'react';
import { Button, Code, Field, Input, Loading, Notice } from '../ui/controls';
import { confirmLink, declineLink, keyOf, showSignIn, signInWithToken, useSessionState } from './session';

const ROLES = { member: '', tenant_admin: ', an administrator of the tenant', operator: ', an operator of this server' } as const;

export const SignIn = () => {
  const { phase, reason, ways, link, session } = useSessionState();
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = 'Sign in · Landfall';
    if (phase === 'signed-out' || phase === 'link') title.current?.focus();
  }, [phase]);
  return (
    <main className="grid min-h-dvh place-items-center p-4">
      {phase === 'starting' ? (
        <Loading />
      ) : (
        <div className="grid w-full max-w-sm gap-4 rounded-lg border border-line bg-panel p-6">
          <h1 ref={title} tabIndex={-1} className="text-lg font-semibold outline-none">
            {phase === 'unreachable' ? 'Landfall' : 'Sign in to Landfall'}
          </h1>
          {phase === 'unreachable' && (
            <Notice tone="bad" role="alert">
              {reason} The console keeps trying.
            </Notice>
          )}
          {phase === 'link' && link && (
            <>
              <p>
                This link signs you in as <strong>{link.userId}</strong> of the tenant <strong>{link.tenantId}</strong>
                {ROLES[link.role]}.
                {session && keyOf(session) !== keyOf(link) && ` You are signed in as ${session.userId}, and will be signed out.`} Go on only if you made the link yourself, or got it from the person who runs
                this server.
              </p>
              <div className="flex gap-2">
                <BusyButton run={confirmLink}>Sign in</BusyButton>
                <Button onClick={declineLink}>Cancel</Button>
              </div>
            </>
          )}
          {phase === 'signed-out' && (
            <>
              <p role="status" className="text-soft">
                {reason}
              </p>
              {ways.provider && (
                <Button look="main" onClick={() => location.assign(`/auth/login?returnTo=${encodeURIComponent(location.pathname + location.search)}`)}>
                  Sign in
                </Button>
              )}
              {ways.token && !ways.provider && <TokenForm />}
              {ways.link && (
                <p className="text-soft">
                  <Code>landfall open</Code>, where the server runs, prints a link that signs you in.
                </p>
              )}
            </>
          )}
        </div>
      )}
    </main>
  );
};

const BusyButton = ({ run, children }: { run: () => Promise<void>; children: string }) => {
  const [busy, setBusy] = useState(false);
  return (
    <Button
      look="main"
      busy={busy}
      onClick={() => {
        setBusy(true);
        void run().finally(() => setBusy(false));
      }}
    >
      {children}
    </Button>
  );
};

const TokenForm = () => {
  const [token, setToken] = useState('');
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError('');
    try {
      await signInWithToken(token.trim());
    } catch (failure) {
      setError(failure instanceof Error ? failure.message : String(failure));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form onSubmit={event => void submit(event)} className="grid gap-3">
      <Field label="Token" error={error}>
        {id => <Input id={id} type="password" autoComplete="off" spellCheck={false} required value={token} onChange={event => setToken(event.target.value)} />}
      </Field>
      <Button look="main" type="submit" busy={busy}>
        Sign in with a token
      </Button>
    </form>
  );
};

/** The page keeps what was typed, and its uploads wait. Only its buttons close it: behind it nothing works. */
export const SessionEnded = () => {
  const { ways } = useSessionState();
  return (
    <Dialog.Root open>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-[70] bg-black/45" />
        <Dialog.Content
          onEscapeKeyDown={event => event.preventDefault()}
          onPointerDownOutside={event => event.preventDefault()}
          className="fixed top-1/2 left-1/2 z-[71] grid w-[calc(100vw-2rem)] max-w-sm -translate-x-1/2 -translate-y-1/2 gap-3 rounded-lg border border-line bg-panel p-5 shadow-xl"
        >
          <Dialog.Title className="text-base font-semibold">Your session has ended</Dialog.Title>
          <Dialog.Description className="text-soft">Sign in again to go on. What you typed and what you are uploading stays here.</Dialog.Description>
          {ways.provider && (
            <Button look="main" onClick={() => void window.open(`/auth/login?returnTo=${encodeURIComponent('/#signed-in')}`)}>
              Sign in in a new tab
            </Button>
          )}
          {ways.token && !ways.provider && <TokenForm />}
          {ways.link && (
            <p className="text-soft">
              Or open a link of <Code>landfall open</Code> in another tab.
            </p>
          )}
          <Button onClick={() => showSignIn('You are signed out.')}>Leave this page</Button>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
};
