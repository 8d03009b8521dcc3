/** The command palette: every screen and the most frequent actions, by keyboard. */
import { useNavigate } from '@tanstack/react-router';
import { Dialog } from 'radix-ui';
import { useId, useMemo, useRef, useState, type KeyboardEvent } from 'react';
import { Icon, type IconName } from '../ui/icons';
import { join } from '../ui/controls';
import { failed } from '../ui/toasts';
import { chooseFiles } from '../upload/choose';
import { groupsFor } from './navigation';
import { SCOPE_NAMES, SCOPES, useSetScope } from './scope';
import { signOut, useSession } from './session';
import { setTheme } from './theme';

interface Command {
  label: string;
  group: string;
  icon: IconName;
  words: string;
  run: () => void;
}

export const Palette = ({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) => (
  <Dialog.Root open={open} onOpenChange={onOpenChange}>
    <Dialog.Portal>
      <Dialog.Overlay className="fixed inset-0 z-40 bg-black/45" />
      <Dialog.Content aria-describedby={undefined} className="fixed top-[12dvh] left-1/2 z-50 w-[calc(100vw-2rem)] max-w-lg -translate-x-1/2 overflow-hidden rounded-lg border border-line bg-panel shadow-xl">
        <Dialog.Title className="sr-only">Commands</Dialog.Title>
        <Commands close={() => onOpenChange(false)} />
      </Dialog.Content>
    </Dialog.Portal>
  </Dialog.Root>
);

const Commands = ({ close }: { close: () => void }) => {
  const { role } = useSession();
  const navigate = useNavigate();
  const setScope = useSetScope();
  const [typed, setTyped] = useState('');
  const [selected, setSelected] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const id = useId();

  const commands = useMemo((): Command[] => {
    const go = groupsFor(role).flatMap(group =>
      group.items.map(item => ({ label: item.label, group: 'Go to', icon: item.icon, words: item.words ?? '', run: () => void navigate({ to: item.to as '/files' }) })),
    );
    const scopes = SCOPES[role].length > 1 ? SCOPES[role].map(scope => ({ label: `Show: ${SCOPE_NAMES[scope]}`, group: 'Scope', icon: 'files' as const, words: 'whose', run: () => setScope(scope) })) : [];
    return [
      ...go,
      { label: 'Upload files…', group: 'Actions', icon: 'upload', words: 'choose add', run: () => chooseFiles('files') },
      { label: 'Upload a folder…', group: 'Actions', icon: 'folder', words: 'directory', run: () => chooseFiles('folder') },
      { label: 'Show failed files', group: 'Actions', icon: 'failures', words: 'errors', run: () => void navigate({ to: '/files', search: { status: 'failed' } }) },
      ...scopes,
      { label: 'Light theme', group: 'Appearance', icon: 'sun', words: 'bright', run: () => setTheme('light') },
      { label: 'Dark theme', group: 'Appearance', icon: 'sun', words: 'night', run: () => setTheme('dark') },
      { label: 'Sign out', group: 'Actions', icon: 'close', words: 'leave log out', run: () => void signOut().catch(failed) },
    ];
  }, [role, navigate, setScope]);

  const wanted = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const found = commands.filter(command => wanted.every(word => `${command.label} ${command.words} ${command.group}`.toLowerCase().includes(word)));
  const shown: Command[] = typed.trim()
    ? [
        ...found,
        { label: `Search the documents for “${typed.trim()}”`, group: 'Search', icon: 'search', words: '', run: () => void navigate({ to: '/search', search: { q: typed.trim() } }) },
        { label: `Files with “${typed.trim()}” in their name`, group: 'Search', icon: 'files', words: '', run: () => void navigate({ to: '/files', search: { q: typed.trim() } }) },
      ]
    : found;
  const current = Math.min(selected, shown.length - 1);

  const move = (to: number) => {
    const next = (to + shown.length) % shown.length;
    setSelected(next);
    list.current?.children[next]?.scrollIntoView({ block: 'nearest' });
  };
  const run = (command: Command | undefined) => {
    if (!command) return;
    close();
    command.run();
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown') move(current + 1);
    else if (event.key === 'ArrowUp') move(current - 1);
    else if (event.key === 'Enter') run(shown[current]);
    else return;
    event.preventDefault();
  };

  return (
    <>
      <div className="flex items-center gap-2 border-b border-line px-3">
        <Icon name="search" className="text-soft" />
        <input
          autoFocus
          role="combobox"
          aria-expanded="true"
          aria-controls={`${id}-list`}
          aria-activedescendant={shown.length > 0 ? `${id}-${current}` : undefined}
          aria-label="Command or search"
          placeholder="Go to a screen, run a command, search…"
          value={typed}
          onChange={event => {
            setTyped(event.target.value);
            setSelected(0);
          }}
          onKeyDown={press}
          className="min-h-11 w-full bg-transparent outline-none"
        />
      </div>
      <ul ref={list} role="listbox" id={`${id}-list`} aria-label="Commands" className="max-h-[50dvh] overflow-y-auto p-1">
        {shown.map((command, index) => (
          <li
            key={`${command.group} ${command.label}`}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === current}
            onPointerMove={() => setSelected(index)}
            onClick={() => run(command)}
            className={join('flex cursor-pointer items-center gap-2.5 rounded px-2.5 py-2', index === current && 'bg-brand-wash')}
          >
            <Icon name={command.icon} className="shrink-0 text-soft" />
            <span className="flex-1">{command.label}</span>
            <span className="text-xs text-soft">{command.group}</span>
          </li>
        ))}
      </ul>
    </>
  );
};
