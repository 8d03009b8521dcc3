import { useState, type FormEvent } from 'react';
import { landfall } from '../api/client';
import type { Tenant } from '../api/reports';
import { messageOf } from '../app/failure';
import { refreshAll } from '../ui/action';
import { Button, Field, Input, Notice, Select } from '../ui/controls';
import { Dialog } from '../ui/dialog';
import { Checkbox } from '../ui/fields';
import { toast } from '../ui/toasts';

const UNITS = { MB: 1024 ** 2, GB: 1024 ** 3, TB: 1024 ** 4 } as const;
type Unit = keyof typeof UNITS;

/** The largest unit in which the size is a short number. */
const inUnit = (size: number): [amount: string, unit: Unit] => {
  const unit = (['TB', 'GB'] as const).find(name => size >= UNITS[name]) ?? 'MB';
  return [String(Math.round((size / UNITS[unit]) * 100) / 100), unit];
};

export const QuotaDialog = ({ tenant, close }: { tenant: Tenant; close: () => void }) => {
  const [amount, setAmount] = useState(inUnit(tenant.bytes.limit)[0]);
  const [unit, setUnit] = useState<Unit>(inUnit(tenant.bytes.limit)[1]);
  const [files, setFiles] = useState(String(tenant.files.limit));
  const [ownBytes, setOwnBytes] = useState(!tenant.isDefault.bytes);
  const [ownFiles, setOwnFiles] = useState(!tenant.isDefault.files);
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);

  const save = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError('');
    try {
      // What is left out goes back to the default.
      const body = { ...(ownBytes ? { bytes: Math.round(Number(amount) * UNITS[unit]) } : {}), ...(ownFiles ? { files: Number(files) } : {}) };
      await landfall.put('/api/v2/admin/tenants/{tenantId}/quota', { params: { tenantId: tenant.tenantId }, body });
      await refreshAll(['quota']);
      toast(`The limits of ${tenant.tenantId} were changed.`);
      close();
    } catch (failure) {
      setError(messageOf(failure));
      setBusy(false);
    }
  };

  return (
    <Dialog open onOpenChange={open => !open && close()} title={`Limits of ${tenant.tenantId}`} description="A lower limit deletes nothing: new files are refused until there is room.">
      <form onSubmit={event => void save(event)} className="grid gap-4">
        {error && (
          <Notice tone="bad" role="alert">
            {error}
          </Notice>
        )}
        <div className="grid gap-2">
          <Checkbox label="Default limit of storage" checked={!ownBytes} onChange={checked => setOwnBytes(!checked)} />
          {ownBytes && (
            <div className="grid grid-cols-[1fr_6rem] gap-2">
              <Field label="Storage">{id => <Input id={id} type="number" min="0" step="any" required value={amount} onChange={event => setAmount(event.target.value)} />}</Field>
              <Field label="Unit">
                {id => (
                  <Select id={id} value={unit} onChange={event => setUnit(event.target.value as Unit)}>
                    {Object.keys(UNITS).map(name => (
                      <option key={name}>{name}</option>
                    ))}
                  </Select>
                )}
              </Field>
            </div>
          )}
        </div>
        <div className="grid gap-2">
          <Checkbox label="Default limit of files" checked={!ownFiles} onChange={checked => setOwnFiles(!checked)} />
          {ownFiles && <Field label="Files">{id => <Input id={id} type="number" min="0" step="1" required value={files} onChange={event => setFiles(event.target.value)} />}</Field>}
        </div>
        <div className="flex justify-end gap-2">
          <Button onClick={close}>Cancel</Button>
          <Button look="main" type="submit" busy={busy}>
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
};
