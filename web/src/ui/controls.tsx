/** Buttons, fields, and the boxes that they are in. */
import { useEffect, useId, type ButtonHTMLAttributes, type InputHTMLAttributes, type ReactNode, type Ref, type SelectHTMLAttributes } from 'react';
import { Icon, type IconName } from './icons';

export const join = (...names: (string | false | null | undefined)[]) => names.filter(Boolean).join(' ');

type Look = 'main' | 'plain' | 'quiet' | 'danger';

const LOOKS: Record<Look, string> = {
  main: 'bg-brand text-brand-ink border-brand hover:brightness-110',
  plain: 'bg-panel text-ink border-line hover:bg-sunken',
  quiet: 'bg-transparent text-ink border-transparent hover:bg-sunken',
  danger: 'bg-panel text-bad border-bad hover:bg-bad-wash',
};

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: Look;
  icon?: IconName;
  /** While an action runs: the button says so and cannot be pressed again. */
  busy?: boolean;
}

export const Button = ({ look = 'plain', icon, busy, children, className, onClick, ...props }: ButtonProps) => (
  <button
    type="button"
    {...props}
    // A button that is disabled loses the focus, so a busy one only ignores the press.
    onClick={busy ? event => event.preventDefault() : onClick}
    aria-disabled={busy || undefined}
    aria-busy={busy || undefined}
    className={join(
      'inline-flex min-h-8 items-center justify-center gap-1.5 rounded-md border px-3 py-1 font-medium whitespace-nowrap disabled:cursor-not-allowed disabled:opacity-55 aria-disabled:cursor-progress aria-disabled:opacity-70',
      LOOKS[look],
      className,
    )}
  >
    {busy ? <Spinner /> : icon && <Icon name={icon} />}
    {children}
  </button>
);

/** A button that is only an icon. Its label is read and shown on hover. */
export const IconButton = ({ icon, label, className, ...props }: { icon: IconName; label: string } & ButtonHTMLAttributes<HTMLButtonElement>) => (
  <button
    type="button"
    aria-label={label}
    title={label}
    {...props}
    className={join('inline-flex size-8 shrink-0 items-center justify-center rounded-md text-soft hover:bg-sunken hover:text-ink disabled:opacity-40', className)}
  >
    <Icon name={icon} />
  </button>
);

export const Spinner = () => (
  <svg viewBox="0 0 20 20" width="16" height="16" className="animate-spin" aria-hidden="true">
    <circle cx="10" cy="10" r="7" fill="none" stroke="currentColor" strokeWidth="2" opacity="0.25" />
    <path d="M10 3a7 7 0 0 1 7 7" fill="none" stroke="currentColor" strokeWidth="2" strokeLinecap="round" />
  </svg>
);

const FIELD = 'min-h-8 rounded-md border border-line bg-panel px-2.5 py-1 text-ink';
/** Fields fill their place, unless they have a width of their own. */
const widthOf = (className = '') => (/(^|\s)w-/.test(className) ? '' : 'w-full');

export const Input = ({ className, ...props }: InputHTMLAttributes<HTMLInputElement> & { ref?: Ref<HTMLInputElement> }) => <input {...props} className={join(FIELD, widthOf(className), className)} />;

export const Select = ({ className, ...props }: SelectHTMLAttributes<HTMLSelectElement>) => <select {...props} className={join(FIELD, widthOf(className), 'pr-7', className)} />;

/** A field with its label, and what is wrong with it. `children` gets the id of the field, and those of what describes it. */
export const Field = ({ label, hint, error, children }: { label: string; hint?: ReactNode; error?: string; children: (id: string, described: string | undefined) => ReactNode }) => {
  const id = useId();
  return (
    <div className="grid gap-1">
      <label htmlFor={id} className="font-medium">
        {label}
      </label>
      {children(id, join(hint != null && `${id}-hint`, error && `${id}-error`) || undefined)}
      {hint && (
        <p id={`${id}-hint`} className="text-soft">
          {hint}
        </p>
      )}
      {error && (
        <p id={`${id}-error`} role="alert" className="text-bad">
          {error}
        </p>
      )}
    </div>
  );
};

export const Panel = ({ title, actions, children, className }: { title?: ReactNode; actions?: ReactNode; children: ReactNode; className?: string }) => (
  <section className={join('rounded-lg border border-line bg-panel', className)}>
    {(title || actions) && (
      <div className="flex flex-wrap items-center justify-between gap-2 border-b border-line px-4 py-2.5">
        {title && <h2 className="text-[15px] font-semibold">{title}</h2>}
        {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
      </div>
    )}
    {children}
  </section>
);

/** The head of a screen. */
export const Heading = ({ title, note, actions }: { title: string; note?: ReactNode; actions?: ReactNode }) => {
  useEffect(() => {
    document.title = `${title} · Landfall`;
  }, [title]);
  return (
  <div className="mb-4 flex flex-wrap items-start justify-between gap-x-4 gap-y-2">
    <div className="min-w-0">
      <h1 id="screen-title" tabIndex={-1} className="text-xl font-semibold break-words outline-none">
        {title}
      </h1>
      {note && <p className="text-soft">{note}</p>}
    </div>
    {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
  </div>
  );
};

export type Tone = 'good' | 'bad' | 'warn' | 'busy' | 'calm' | 'brand';

const TONES: Record<Tone, string> = {
  good: 'bg-good-wash text-good',
  bad: 'bg-bad-wash text-bad',
  warn: 'bg-warn-wash text-warn',
  busy: 'bg-busy-wash text-busy',
  calm: 'bg-sunken text-ink',
  brand: 'bg-brand-wash text-brand',
};

export const Badge = ({ tone = 'calm', children, title }: { tone?: Tone; children: ReactNode; title?: string }) => (
  <span title={title} className={join('inline-flex items-center gap-1 rounded-full px-2 py-0.5 text-xs font-medium whitespace-nowrap', TONES[tone])}>
    {children}
  </span>
);

/** A sentence that a person must not miss. */
export const Notice = ({ tone = 'warn', children, actions, role = 'status' }: { tone?: Tone; children: ReactNode; actions?: ReactNode; role?: 'status' | 'alert' }) => (
  <div role={role} className={join('flex flex-wrap items-center justify-between gap-2 rounded-md px-3 py-2', TONES[tone])}>
    <div className="min-w-0 break-words">{children}</div>
    {actions && <div className="flex gap-2">{actions}</div>}
  </div>
);

export const Gauge = ({ value, max, label, tone = 'brand' }: { value: number; max: number; label: string; tone?: 'brand' | 'good' | 'bad' | 'warn' }) => {
  const share = max > 0 ? Math.min(100, Math.max(0, (value / max) * 100)) : 0;
  const color = { brand: 'bg-brand', good: 'bg-good', bad: 'bg-bad', warn: 'bg-warn' }[tone];
  return (
    <div role="progressbar" aria-label={label} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(share)} className="h-1.5 overflow-hidden rounded-full bg-sunken">
      <div data-bar className={join('h-full rounded-full transition-[width]', color)} style={{ width: `${share}%` }} />
    </div>
  );
};

/** What a screen says when it has nothing to show. */
export const Empty = ({ title, children, actions }: { title: string; children?: ReactNode; actions?: ReactNode }) => (
  <div className="grid justify-items-center gap-2 px-6 py-12 text-center">
    <p className="text-base font-medium">{title}</p>
    {children && <div className="max-w-prose text-soft">{children}</div>}
    {actions && <div className="mt-2 flex flex-wrap justify-center gap-2">{actions}</div>}
  </div>
);

export const Loading = ({ what = 'Loading' }: { what?: string }) => (
  <div role="status" className="flex items-center justify-center gap-2 px-6 py-12 text-soft">
    <Spinner /> {what}…
  </div>
);

/** A sentence in which names of commands and settings are between backticks. */
export const Prose = ({ text }: { text: string }) => text.split('`').map((part, index) => (index % 2 === 1 ? <Code key={index}>{part}</Code> : part));

export const Code = ({ children }: { children: ReactNode }) => <code className="rounded bg-sunken px-1 py-0.5 font-mono text-[0.92em] break-all">{children}</code>;
