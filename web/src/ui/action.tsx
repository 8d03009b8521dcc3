/** Buttons that ask the server to do something: busy while it does, a message when it is done, and what changed is loaded again. */
import { useState, type ReactNode } from 'react';
import { queries } from '../api/client';
import { Button, type ButtonProps } from './controls';
import { Confirm } from './dialog';
import { failed, toast } from './toasts';

interface Deed {
  run: () => Promise<unknown>;
  /** What to say when it is done. */
  done?: string;
  /** The first part of the keys of the queries whose answers it changes. */
  refresh?: readonly string[];
}

export const refreshAll = (kinds: readonly string[]) => Promise.all(kinds.map(kind => queries.invalidateQueries({ queryKey: [kind] })));

/** A button may vanish with what it did. Then the focus goes to the title of the screen, and not to nowhere. */
const keepFocus = () =>
  setTimeout(() => {
    if (document.activeElement === null || document.activeElement === document.body) document.getElementById('screen-title')?.focus();
  }, 50);

type Props = Deed & Omit<ButtonProps, 'onClick' | 'busy'>;

export const ActionButton = ({ run, done, refresh = [], ...button }: Props) => {
  const [busy, setBusy] = useState(false);
  const press = async () => {
    setBusy(true);
    try {
      await run();
      if (done) toast(done);
    } catch (error) {
      failed(error);
    } finally {
      await refreshAll(refresh);
      setBusy(false);
      keepFocus();
    }
  };
  return <Button {...button} busy={busy} onClick={() => void press()} />;
};

/** The same for what cannot be undone: it asks first. */
export const ConfirmButton = ({
  run,
  done,
  refresh = [],
  title,
  question,
  action,
  danger,
  ...button
}: Props & { title: string; question: ReactNode; action: string; danger?: boolean }) => {
  const [open, setOpen] = useState(false);
  const confirm = async () => {
    await run();
    if (done) toast(done);
    await refreshAll(refresh);
  };
  const change = (wanted: boolean) => {
    setOpen(wanted);
    if (!wanted) keepFocus();
  };
  return (
    <>
      <Button {...button} onClick={() => setOpen(true)} />
      <Confirm open={open} onOpenChange={change} title={title} action={action} onConfirm={confirm} danger={danger}>
        {question}
      </Confirm>
    </>
  );
};
