/** The settings in force in the process that answers. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { landfall } from '../api/client';
import { count } from '../app/format';
import { Answer } from '../ui/answer';
import { Badge, Code, Empty, Field, Heading, Input, Panel, Prose } from '../ui/controls';
import { Checkbox } from '../ui/fields';
import { Only } from '../ui/only';
import { Table, type Column } from '../ui/table';
import type { components } from '@landfall/client/schema';

type Setting = components['schemas']['SettingView'];

const COLUMNS: readonly Column<Setting>[] = [
  {
    head: 'Setting',
    bare: true,
    cell: setting => (
      <>
        <p className="font-mono font-medium break-all">{setting.name}</p>
        <p className="text-soft">
          <Prose text={setting.description} />
        </p>
      </>
    ),
  },
  { head: 'Value', className: 'sm:w-2/5', cell: setting => (setting.value === '' ? <span className="text-soft">not set</span> : <Code>{setting.value}</Code>) },
  { head: 'From', className: 'sm:w-32', cell: setting => <Badge tone={setting.source === 'default' ? 'calm' : 'brand'}>{setting.source}</Badge> },
];

export const SettingsScreen = () => (
  <Only role="operator" title="Settings in force">
    <Settings />
  </Only>
);

const Settings = () => {
  const query = useQuery({ queryKey: ['settings'], queryFn: ({ signal }) => landfall.get('/api/v2/admin/config', { signal }) });
  const [q, setQ] = useState('');
  const [onlySet, setOnlySet] = useState(false);
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (setting: Setting) =>
    (!onlySet || setting.source !== 'default') && words.every(word => `${setting.name} ${setting.value} ${setting.description}`.toLowerCase().includes(word));
  return (
    <>
      <Heading title="Settings in force" note="Of the process that answers. They are set by environment variables, and change when it starts again." />
      <Answer query={query}>
        {({ groups }) => {
          const shown = groups.map(group => ({ ...group, settings: group.settings.filter(matches) })).filter(group => group.settings.length > 0);
          const total = shown.reduce((sum, group) => sum + group.settings.length, 0);
          return (
            <div className="grid grid-cols-1 gap-4">
              <div className="flex flex-wrap items-end gap-x-6 gap-y-3">
                <div className="min-w-0 flex-1 basis-60 sm:max-w-sm">
                  <Field label="Find a setting">{id => <Input id={id} type="search" value={q} onChange={event => setQ(event.target.value)} />}</Field>
                </div>
                <div className="pb-1.5">
                  <Checkbox label="Only those that are not the default" checked={onlySet} onChange={setOnlySet} />
                </div>
              </div>
              <p role="status" className="text-soft">
                {count(total, 'setting')}
              </p>
              {shown.length === 0 && (
                <Panel>
                  <Empty title="No setting matches" />
                </Panel>
              )}
              {shown.map(group => (
                <Panel key={group.name} title={group.name}>
                  <Table label={group.name} columns={COLUMNS} rows={group.settings} keyOf={setting => setting.name} />
                </Panel>
              ))}
            </div>
          );
        }}
      </Answer>
    </>
  );
};
