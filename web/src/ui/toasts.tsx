/** Short messages about what was done, some with Undo. They are read aloud and can be closed. */
import { useSyncExternalStore } from 'react';
import { Button, IconButton, join } from './controls';

export interface Toast {
  id: number;
  text: string;
  tone: 'calm' | 'bad';
  action?: { label: string; run: () => void };
}

const SHOWN_MS = 6_000;
let toasts: Toast[] = [];
let next = 1;
const listeners = new Set<() => void>();

const set = (changed: Toast[]) => {
  toasts = changed;
  for (const listener of listeners) listener();
};

export const dismiss = (id: number) => set(toasts.filter(toast => toast.id !== id));

export const toast = (text: string, options: { tone?: 'calm' | 'bad'; action?: Toast['action'] } = {}) => {
  const id = next++;
  set([...toasts.slice(-3), { id, text, tone: options.tone ?? 'calm', ...(options.action ? { action: options.action } : {}) }]);
  // An error stays until it was read.
  if (options.tone !== 'bad') setTimeout(() => dismiss(id), options.action ? SHOWN_MS * 2 : SHOWN_MS);
};

export const failed = (error: unknown) => toast(error instanceof Error ? error.message : String(error), { tone: 'bad' });

export const Toasts = () => {
  const shown = useSyncExternalStore(
    listener => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <div role="region" aria-label="Messages" aria-live="polite" className="pointer-events-none fixed inset-x-4 bottom-4 z-[60] grid justify-items-center gap-2 sm:left-auto sm:justify-items-end">
      {shown.map(({ id, text, tone, action }) => (
        <div
          key={id}
          className={join('pointer-events-auto flex max-w-md items-center gap-2 rounded-md border py-1.5 pr-1.5 pl-3 shadow-lg', tone === 'bad' ? 'border-bad bg-bad-wash text-bad' : 'border-line bg-panel')}
        >
          <span className="min-w-0 break-words">{text}</span>
          {action && (
            <Button
              look="quiet"
              className="text-brand"
              onClick={() => {
                dismiss(id);
                action.run();
              }}
            >
              {action.label}
            </Button>
          )}
          <IconButton icon="close" label="Dismiss" onClick={() => dismiss(id)} />
        </div>
      ))}
    </div>
  );
};
