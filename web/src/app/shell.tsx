/** The frame around every screen: navigation, scope, notifications, the person, and what is being uploaded. */
import { useQuery } from '@tanstack/react-query';
import { Link, Outlet, useRouterState } from '@tanstack/react-router';
import { Dialog } from 'radix-ui';
import { useEffect, useRef, useState } from 'react';
import { landfall } from '../api/client';
import { UploadTray } from '../upload/tray';
import { IconButton, Notice, Select } from '../ui/controls';
import { Icon } from '../ui/icons';
import { Menu } from '../ui/menu';
import { failed, Toasts } from '../ui/toasts';
import { useConnection } from './live';
import { groupsFor } from './navigation';
import { Palette } from './palette';
import { SCOPE_NAMES, SCOPES, useScope, useSetScope } from './scope';
import { dismissReason, signOut, useSession, useSessionState } from './session';
import { SessionEnded, SignIn } from './sign-in';
import { setTheme, useTheme } from './theme';

export const Shell = () => {
  const { phase } = useSessionState();
  if (phase !== 'signed-in' && phase !== 'ended') return <SignIn />;
  return (
    <>
      <Frame />
      {phase === 'ended' && <SessionEnded />}
      <Toasts />
    </>
  );
};

const Frame = () => {
  const [navOpen, setNavOpen] = useState(false);
  const [paletteOpen, setPaletteOpen] = useState(false);
  const { reason } = useSessionState();
  const connection = useConnection();
  const path = useRouterState({ select: state => state.location.pathname });
  useShortcuts(() => setPaletteOpen(true));
  useFocusOnNewScreen(path);
  useEffect(() => setNavOpen(false), [path]);
  return (
    <div className="min-h-dvh lg:grid lg:grid-cols-[15rem_minmax(0,1fr)]">
      <a href="#main" className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:m-2 focus:rounded focus:bg-panel focus:px-3 focus:py-2">
        Skip to content
      </a>
      <aside className="hidden border-r border-line bg-panel lg:block">
        <div className="sticky top-0 max-h-dvh overflow-y-auto">
          <Brand />
          <Navigation />
        </div>
      </aside>
      <Dialog.Root open={navOpen} onOpenChange={setNavOpen}>
        <Dialog.Portal>
          <Dialog.Overlay className="fixed inset-0 z-40 bg-black/45 lg:hidden" />
          <Dialog.Content aria-describedby={undefined} className="fixed inset-y-0 left-0 z-50 w-64 overflow-y-auto border-r border-line bg-panel lg:hidden">
            <Dialog.Title className="sr-only">Navigation</Dialog.Title>
            <Brand />
            <Navigation />
          </Dialog.Content>
        </Dialog.Portal>
      </Dialog.Root>
      <div className="flex min-w-0 flex-col">
        <header className="sticky top-0 z-30 flex min-h-13 items-center gap-2 border-b border-line bg-panel px-3 sm:px-5">
          <IconButton icon="menu" label="Open navigation" className="lg:hidden" onClick={() => setNavOpen(true)} />
          <button
            type="button"
            onClick={() => setPaletteOpen(true)}
            className="flex min-h-8 min-w-0 flex-1 items-center gap-2 rounded-md border border-line bg-page px-2.5 text-left text-soft sm:max-w-xs"
          >
            <Icon name="search" className="shrink-0" />
            <span className="flex-1 truncate">Go to or search…</span>
            <kbd className="hidden rounded border border-line px-1 font-sans text-xs sm:block">Ctrl K</kbd>
          </button>
          <div className="hidden flex-1 sm:block" />
          <ScopeSwitch />
          <Bell />
          <Account />
        </header>
        {connection === 'offline' && (
          <div className="px-3 pt-3 sm:px-5">
            <Notice tone="bad" role="alert">
              The server does not respond. The console keeps trying, and uploads go on when it is back.
            </Notice>
          </div>
        )}
        {reason && (
          <div className="px-3 pt-3 sm:px-5">
            <Notice tone="bad" role="alert" actions={<IconButton icon="close" label="Dismiss" onClick={dismissReason} />}>
              {reason}
            </Notice>
          </div>
        )}
        <main id="main" tabIndex={-1} className="min-w-0 flex-1 px-3 py-5 outline-none sm:px-5">
          <Outlet />
        </main>
        <UploadTray />
      </div>
      <Palette open={paletteOpen} onOpenChange={setPaletteOpen} />
    </div>
  );
};

const Brand = () => (
  <div className="flex h-13 items-center gap-2 px-4 text-[15px] font-semibold">
    <svg viewBox="0 0 32 32" width="24" height="24" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="#0b6e78" />
      <path d="M16 6v11m-5-5 5 5 5-5M5 24q3.7-3.4 7.3 0t7.4 0 7.3 0" fill="none" stroke="#fff" strokeWidth="2.6" strokeLinecap="round" strokeLinejoin="round" />
    </svg>
    Landfall
  </div>
);

const Navigation = () => {
  const { role } = useSession();
  return (
    <nav aria-label="Screens" className="grid gap-4 px-2 pt-2 pb-6">
      {groupsFor(role).map(group => (
        <div key={group.label}>
          <p className="px-2 pb-1 text-xs font-semibold text-soft">{group.label}</p>
          <ul>
            {group.items.map(item => (
              <li key={item.to}>
                <Link
                  to={item.to as '/files'}
                  activeProps={{ 'aria-current': 'page' }}
                  className="flex items-center gap-2.5 rounded-md px-2 py-1.5 text-ink hover:bg-sunken aria-[current=page]:bg-brand-wash aria-[current=page]:font-medium aria-[current=page]:text-brand"
                >
                  <Icon name={item.icon} className="shrink-0" />
                  {item.label}
                </Link>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </nav>
  );
};

const ScopeSwitch = () => {
  const { role } = useSession();
  const scope = useScope();
  const setScope = useSetScope();
  if (SCOPES[role].length === 1) return null;
  return (
    <Select aria-label="Whose files" value={scope} onChange={event => setScope(event.target.value as typeof scope)} className="w-auto max-w-28 sm:max-w-none">
      {SCOPES[role].map(name => (
        <option key={name} value={name}>
          {SCOPE_NAMES[name]}
        </option>
      ))}
    </Select>
  );
};

const Bell = () => {
  const { data } = useQuery({
    queryKey: ['notifications', 'unread'],
    queryFn: ({ signal }) => landfall.get('/api/v2/notifications', { query: { unread: true, limit: 1 }, signal }),
  });
  const unread = data?.unreadCount ?? 0;
  return (
    <Link to="/notifications" aria-label={unread > 0 ? `Notifications, ${unread} unread` : 'Notifications'} title="Notifications" className="relative inline-flex size-8 shrink-0 items-center justify-center rounded-md text-soft hover:bg-sunken hover:text-ink">
      <Icon name="bell" />
      {unread > 0 && <span aria-hidden="true" className="absolute -top-0.5 -right-0.5 min-w-4 rounded-full bg-bad px-1 text-center text-[10px] leading-4 font-semibold text-panel">{unread > 99 ? '99+' : unread}</span>}
    </Link>
  );
};

const ROLE_NAMES = { member: 'Member', tenant_admin: 'Administrator of the tenant', operator: 'Operator' } as const;

const Account = () => {
  const { userId, tenantId, role } = useSession();
  const theme = useTheme();
  return (
    <Menu
      label="Account"
      trigger={
        <button type="button" aria-label={`Account of ${userId}`} className="inline-flex size-8 shrink-0 items-center justify-center rounded-full bg-brand-wash font-semibold text-brand uppercase">
          {[...userId][0]}
        </button>
      }
      items={[
        { label: userId === tenantId ? userId : `${userId} · ${tenantId}`, onSelect: () => {}, disabled: true },
        { label: ROLE_NAMES[role], onSelect: () => {}, disabled: true },
        'line',
        { label: 'Light', icon: 'sun', checked: theme === 'light', onSelect: () => setTheme('light') },
        { label: 'Dark', checked: theme === 'dark', onSelect: () => setTheme('dark') },
        { label: 'As the system', checked: theme === 'system', onSelect: () => setTheme('system') },
        'line',
        { label: 'API documentation', icon: 'link', onSelect: () => void window.open('/api/docs', '_blank', 'noopener') },
        { label: 'Sign out', onSelect: () => void signOut().catch(failed) },
      ]}
    />
  );
};

const useShortcuts = (openPalette: () => void) => {
  const open = useRef(openPalette);
  open.current = openPalette;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      const isTyping = target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        open.current();
      } else if (event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        const field = document.querySelector<HTMLInputElement>('main input[type=search]');
        if (field) field.focus();
        else open.current();
      }
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
};

/** A person who uses a screen reader hears which screen it is now. */
const useFocusOnNewScreen = (path: string) => {
  const before = useRef(path);
  useEffect(() => {
    const title = document.getElementById('screen-title');
    if (before.current === path) return;
    before.current = path;
    const active = document.activeElement;
    if (!active || active === document.body || active.closest('nav')) (title ?? document.getElementById('main'))?.focus();
  }, [path]);
};

