/** Dialogs. */
import { Dialog as Radix } from 'radix-ui';
import { useRef, useState, type ReactNode } from 'react';
import { Button, IconButton, Notice, join } from './controls';

export const Dialog = ({
  open,
  onOpenChange,
  title,
  description,
  children,
  wide,
}: {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  title: ReactNode;
  description?: ReactNode;
  children?: ReactNode;
  wide?: boolean;
}) => {
  // A dialog that no trigger of Radix opened does not know where the focus was.
  const before = useRef<Element | null>(null);
  /** A form begins at its first field, and not at the button that closes it. */
  const begin = (event: Event) => {
    before.current = document.activeElement;
    const field = (event.currentTarget as HTMLElement).querySelector<HTMLElement>('input, select, textarea');
    if (!field) return;
    event.preventDefault();
    field.focus();
  };
  const giveBack = (event: Event) => {
    event.preventDefault();
    const to = before.current instanceof HTMLElement && before.current.isConnected && before.current !== document.body ? before.current : document.getElementById('screen-title');
    to?.focus();
  };
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-black/45" />
        <Radix.Content
          onOpenAutoFocus={begin}
          onCloseAutoFocus={giveBack}
          {...(description ? {} : { 'aria-describedby': undefined })}
          className={join(
            'fixed top-1/2 left-1/2 z-50 grid max-h-[90dvh] w-[calc(100vw-2rem)] -translate-x-1/2 -translate-y-1/2 gap-3 overflow-y-auto rounded-lg border border-line bg-panel p-5 shadow-xl',
            wide ? 'max-w-3xl' : 'max-w-md',
          )}
        >
          <div className="flex items-start justify-between gap-2">
            <Radix.Title className="text-base font-semibold">{title}</Radix.Title>
            <Radix.Close asChild>
              <IconButton icon="close" label="Close" className="-mt-1 -mr-1" />
            </Radix.Close>
          </div>
          {description && <Radix.Description className="text-soft">{description}</Radix.Description>}
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
};

/** Asks before something that cannot be undone. `onConfirm` may take its time; its error is shown and the dialog stays. */
export const Confirm = ({
  open,
  onOpenChange,
  title,
  children,
  action,
  onConfirm,
  danger = true,
}: {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  title: string;
  children: ReactNode;
  action: string;
  onConfirm: () => Promise<unknown> | unknown;
  danger?: boolean;
}) => {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState('');
  const confirm = async () => {
    setBusy(true);
    setError('');
    try {
      await onConfirm();
      onOpenChange(false);
    } catch (failure) {
      setError(failure instanceof Error ? failure.message : String(failure));
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title={title} description={children}>
      {error && (
        <Notice tone="bad" role="alert">
          {error}
        </Notice>
      )}
      <div className="flex justify-end gap-2">
        <Button onClick={() => onOpenChange(false)}>Cancel</Button>
        <Button look={danger ? 'danger' : 'main'} busy={busy} onClick={() => void confirm()}>
          {action}
        </Button>
      </div>
    </Dialog>
  );
};
