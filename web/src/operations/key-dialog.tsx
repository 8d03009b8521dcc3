import { useState, type FormEvent } from 'react';
import { landfall } from '../api/client';
import type { KeyScope } from '../api/reports';
import { messageOf } from '../app/failure';
import { useSession, type Role } from '../app/session';
import { refreshAll } from '../ui/action';
import { Button, Field, Input, Notice, Select } from '../ui/controls';
import { Dialog } from '../ui/dialog';
import { Checkbox, FieldGroup, Secret } from '../ui/fields';

const RIGHTS: readonly [KeyScope, label: string, hint: string][] = [
  ['read', 'Read', 'See files, their content, events and reports.'],
  ['upload', 'Upload', 'Register, upload and confirm files.'],
  ['manage', 'Manage', 'Change and delete files, webhooks, notifications and keys.'],
  ['admin', 'Administer', 'Use the role below, for what is not the user’s own.'],
];
const ROLES: readonly [Role, string][] = [
  ['member', 'Member'],
  ['tenant_admin', 'Administrator of the tenant'],
  ['operator', 'Operator of this server'],
];
const DAYS = { '30': '30 days', '90': '90 days', '365': '1 year', never: 'never', date: 'on a day' } as const;

const expiry = (when: string, date: string): string | undefined => {
  if (when === 'never') return undefined;
  if (when === 'date') return new Date(`${date}T23:59:59`).toISOString();
  return new Date(Date.now() + Number(when) * 86_400_000).toISOString();
};

export const NewKeyDialog = ({ close }: { close: () => void }) => {
  const { role: own, tenantId, userId } = useSession();
  const [name, setName] = useState('');
  const [scopes, setScopes] = useState<KeyScope[]>(['read']);
  const [when, setWhen] = useState<string>('90');
  const [date, setDate] = useState('');
  const [role, setRole] = useState<Role>('member');
  const [user, setUser] = useState(userId);
  const [tenant, setTenant] = useState(tenantId);
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);
  const [created, setCreated] = useState('');
  const allowed = ROLES.slice(0, ROLES.findIndex(([key]) => key === own) + 1);
  const isAdmin = scopes.includes('admin');

  const create = async (event: FormEvent) => {
    event.preventDefault();
    if (scopes.length === 0) return setError('Choose at least one thing that the key may do.');
    setBusy(true);
    setError('');
    try {
      const made = await landfall.post('/api/v2/keys', {
        body: {
          name: name.trim(),
          scopes,
          expiresAt: expiry(when, date),
          ...(isAdmin ? { role } : {}),
          ...(user !== userId || tenant !== tenantId ? { userId: user, tenantId: tenant } : {}),
        },
      });
      await refreshAll(['keys']);
      setCreated(made.key);
    } catch (failure) {
      setError(messageOf(failure));
    } finally {
      setBusy(false);
    }
  };

  if (created)
    return (
      <Dialog open onOpenChange={open => !open && close()} title={`The key ${name.trim()}`} description="Send it as: Authorization: Bearer, then the key.">
        <Secret label="Key" value={created} />
        <div className="flex justify-end">
          <Button look="main" onClick={close}>
            Done
          </Button>
        </div>
      </Dialog>
    );
  return (
    <Dialog open onOpenChange={open => !open && close()} title="Create a key">
      <form onSubmit={event => void create(event)} className="grid gap-4">
        {error && (
          <Notice tone="bad" role="alert">
            {error}
          </Notice>
        )}
        <Field label="Name" hint="What it is for.">
          {(id, described) => <Input id={id} aria-describedby={described} required maxLength={100} autoComplete="off" value={name} onChange={event => setName(event.target.value)} />}
        </Field>
        <FieldGroup label="What it may do">
          {RIGHTS.map(([scope, label, hint]) => (
            <Checkbox key={scope} label={label} hint={hint} checked={scopes.includes(scope)} onChange={checked => setScopes(before => (checked ? [...before, scope] : before.filter(one => one !== scope)))} />
          ))}
        </FieldGroup>
        {isAdmin && (
          <Field label="Role">
            {id => (
              <Select id={id} value={role} onChange={event => setRole(event.target.value as Role)}>
                {allowed.map(([key, label]) => (
                  <option key={key} value={key}>
                    {label}
                  </option>
                ))}
              </Select>
            )}
          </Field>
        )}
        <div className="grid gap-3 sm:grid-cols-2">
          <Field label="Expires">
            {id => (
              <Select id={id} value={when} onChange={event => setWhen(event.target.value)}>
                {Object.entries(DAYS).map(([key, label]) => (
                  <option key={key} value={key}>
                    {key === 'never' || key === 'date' ? label : `in ${label}`}
                  </option>
                ))}
              </Select>
            )}
          </Field>
          {when === 'date' && <Field label="Last day">{id => <Input id={id} type="date" required min={new Date().toISOString().slice(0, 10)} value={date} onChange={event => setDate(event.target.value)} />}</Field>}
        </div>
        {own !== 'member' && (
          <div className="grid gap-3 sm:grid-cols-2">
            <Field label="Acts for the user">{id => <Input id={id} required maxLength={255} value={user} onChange={event => setUser(event.target.value)} />}</Field>
            {own === 'operator' && <Field label="of the tenant">{id => <Input id={id} required maxLength={255} value={tenant} onChange={event => setTenant(event.target.value)} />}</Field>}
          </div>
        )}
        <div className="flex justify-end gap-2">
          <Button onClick={close}>Cancel</Button>
          <Button look="main" type="submit" busy={busy}>
            Create
          </Button>
        </div>
      </form>
    </Dialog>
  );
};
