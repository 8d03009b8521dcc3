/** A new webhook, or changes to one. */
import type { EventType } from '@landfall/client';
import { useState, type FormEvent } from 'react';
import { landfall } from '../api/client';
import type { Webhook } from '../api/reports';
import type { Scope } from '../api/types';
import { messageOf } from '../app/failure';
import { SCOPE_NAMES, SCOPES } from '../app/scope';
import { useSession } from '../app/session';
import { refreshAll } from '../ui/action';
import { Button, Field, Input, Notice, Select } from '../ui/controls';
import { Dialog } from '../ui/dialog';
import { Checkbox, FieldGroup, Secret, Textarea } from '../ui/fields';
import { toast } from '../ui/toasts';

/** The types of events, with what they tell of. Those of the system need the scope of all tenants. */
const TYPES: Record<EventType, { hint: string; ofSystem?: true }> = {
  'file:status-changed': { hint: 'A file is in another state.' },
  'file:processing-stalled': { hint: 'A worker lost a file, which goes on by itself.' },
  'file:cleaned-up': { hint: 'A file was removed by a cleanup.' },
  'batch:progress': { hint: 'A file of a batch ended.' },
  'batch:completed': { hint: 'All files of a batch have ended.' },
  'batch:expired': { hint: 'Files of a batch never came.' },
  'batch:cancelled': { hint: 'A batch was cancelled.' },
  'notification:created': { hint: 'A person gets a notification.' },
  'queue:rate-limit-exceeded': { hint: 'A rate limit slows a stage.', ofSystem: true },
  'circuit:changed': { hint: 'A service fails, or works again.', ofSystem: true },
  'job:completed': { hint: 'A maintenance job ended.', ofSystem: true },
  'alert:raised': { hint: 'An operator should look.', ofSystem: true },
};

export const WebhookDialog = ({ webhook, close }: { webhook?: Webhook; close: () => void }) => {
  const { role } = useSession();
  const [url, setUrl] = useState(webhook?.url ?? '');
  const [description, setDescription] = useState(webhook?.description ?? '');
  const [scope, setScope] = useState<Scope>(webhook?.scope ?? 'own');
  const [all, setAll] = useState(!webhook?.eventTypes);
  const [types, setTypes] = useState<string[]>(webhook?.eventTypes ?? ['file:status-changed']);
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);
  const [secret, setSecret] = useState('');
  const offered = Object.entries(TYPES).filter(([, { ofSystem }]) => !ofSystem || scope === 'all');

  const save = async (event: FormEvent) => {
    event.preventDefault();
    const chosen = types.filter(type => offered.some(([name]) => name === type));
    if (!all && chosen.length === 0) return setError('Choose at least one type of events.');
    setBusy(true);
    setError('');
    const eventTypes = all ? null : chosen;
    try {
      if (webhook) {
        await landfall.patch('/api/v2/webhooks/{webhookId}', {
          params: { webhookId: webhook.id },
          body: { ...(url.trim() === webhook.url ? {} : { url: url.trim() }), description: description.trim() || null, eventTypes },
        });
        toast('The webhook was changed.');
        await refreshAll(['webhooks', 'webhook']);
        close();
      } else {
        const registered = await landfall.post('/api/v2/webhooks', {
          body: { url: url.trim(), scope, ...(description.trim() ? { description: description.trim() } : {}), ...(eventTypes ? { eventTypes } : {}) },
        });
        await refreshAll(['webhooks']);
        setSecret(registered.secret);
      }
    } catch (failure) {
      setError(messageOf(failure));
    } finally {
      setBusy(false);
    }
  };

  if (secret)
    return (
      <Dialog open onOpenChange={open => !open && close()} title="The webhook was added" description="Each delivery is signed with this secret. With it your program checks that a delivery is genuine.">
        <Secret label="Secret" value={secret} />
        <div className="flex justify-end">
          <Button look="main" onClick={close}>
            Done
          </Button>
        </div>
      </Dialog>
    );
  return (
    <Dialog open onOpenChange={open => !open && close()} title={webhook ? 'Change the webhook' : 'Add a webhook'}>
      <form onSubmit={event => void save(event)} className="grid gap-4">
        {error && (
          <Notice tone="bad" role="alert">
            {error}
          </Notice>
        )}
        <Field label="Address" hint="An http or https address that this server can reach.">
          {(id, described) => <Input id={id} aria-describedby={described} type="url" required maxLength={2000} placeholder="https://" value={url} onChange={event => setUrl(event.target.value)} />}
        </Field>
        <Field label="Description (optional)">{id => <Textarea id={id} rows={2} maxLength={500} value={description} onChange={event => setDescription(event.target.value)} />}</Field>
        {!webhook && SCOPES[role].length > 1 && (
          <Field label="Whose events">
            {id => (
              <Select id={id} value={scope} onChange={event => setScope(event.target.value as Scope)}>
                {SCOPES[role].map(name => (
                  <option key={name} value={name}>
                    {SCOPE_NAMES[name]}
                  </option>
                ))}
              </Select>
            )}
          </Field>
        )}
        <FieldGroup label="Which events">
          <Checkbox label="All types, also those that are added later" checked={all} onChange={setAll} />
          {!all && (
            <div className="ml-6 grid gap-1.5">
              {offered.map(([type, { hint }]) => (
                <Checkbox key={type} label={<span className="font-mono text-[0.92em]">{type}</span>} hint={hint} checked={types.includes(type)} onChange={checked => setTypes(before => (checked ? [...before, type] : before.filter(one => one !== type)))} />
              ))}
            </div>
          )}
        </FieldGroup>
        <div className="flex justify-end gap-2">
          <Button onClick={close}>Cancel</Button>
          <Button look="main" type="submit" busy={busy}>
            {webhook ? 'Save' : 'Add'}
          </Button>
        </div>
      </form>
    </Dialog>
  );
};
