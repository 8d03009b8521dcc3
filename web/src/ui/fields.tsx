/** More fields: check boxes, a choice of a few, long text, and a secret that is shown once. */
import { useId, useState, type ReactNode, type TextareaHTMLAttributes } from 'react';
import { Button, Input, Notice, join } from './controls';

export const Textarea = ({ className, ...props }: TextareaHTMLAttributes<HTMLTextAreaElement>) => (
  <textarea rows={3} {...props} className={join('w-full rounded-md border border-line bg-panel px-2.5 py-1.5 text-ink', className)} />
);

export const Checkbox = ({ label, hint, checked, onChange, disabled }: { label: ReactNode; hint?: ReactNode; checked: boolean; onChange: (checked: boolean) => void; disabled?: boolean }) => {
  const id = useId();
  return (
    <div className="flex items-start gap-2">
      <input
        id={id}
        type="checkbox"
        checked={checked}
        disabled={disabled}
        aria-describedby={hint ? `${id}-hint` : undefined}
        onChange={event => onChange(event.target.checked)}
        className="mt-0.5 size-4 shrink-0 accent-brand"
      />
      <div className="min-w-0">
        <label htmlFor={id} className={join(disabled && 'text-soft')}>
          {label}
        </label>
        {hint && (
          <p id={`${id}-hint`} className="text-soft">
            {hint}
          </p>
        )}
      </div>
    </div>
  );
};

/** Fields that belong together. */
export const FieldGroup = ({ label, error, children }: { label: string; error?: string; children: ReactNode }) => (
  <fieldset className="grid gap-1.5">
    <legend className="mb-1 font-medium">{label}</legend>
    {children}
    {error && (
      <p role="alert" className="text-bad">
        {error}
      </p>
    )}
  </fieldset>
);

/** A choice of a few, all of which are seen. */
export const Segments = <T extends string | number>({ label, value, options, onChange }: { label: string; value: T; options: readonly (readonly [T, string])[]; onChange: (value: T) => void }) => (
  <div role="group" aria-label={label} className="inline-flex flex-wrap rounded-md border border-line bg-panel p-0.5">
    {options.map(([key, name]) => (
      <button
        key={key}
        type="button"
        aria-pressed={key === value}
        onClick={() => onChange(key)}
        className="min-h-7 rounded px-2.5 font-medium whitespace-nowrap text-soft hover:text-ink aria-pressed:bg-brand-wash aria-pressed:text-brand"
      >
        {name}
      </button>
    ))}
  </div>
);

/** A secret that the server shows only now. */
export const Secret = ({ label, value }: { label: string; value: string }) => {
  const id = useId();
  const [copied, setCopied] = useState<boolean | null>(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(value);
      setCopied(true);
    } catch {
      // Without https a page may not use the clipboard.
      setCopied(false);
      const field = document.getElementById(id) as HTMLInputElement | null;
      field?.focus();
      field?.select();
    }
  };
  return (
    <div className="grid gap-2">
      <label htmlFor={id} className="font-medium">
        {label}
      </label>
      <div className="flex gap-2">
        <Input id={id} readOnly value={value} spellCheck={false} onFocus={event => event.target.select()} className="font-mono" />
        <Button icon="copy" onClick={() => void copy()}>
          Copy
        </Button>
      </div>
      <p role="status" className="text-soft">
        {copied === true ? 'Copied.' : copied === false ? 'It is selected: copy it with Ctrl C.' : ''}
      </p>
      <Notice tone="warn">Keep it in a safe place. It cannot be shown again.</Notice>
    </div>
  );
};
