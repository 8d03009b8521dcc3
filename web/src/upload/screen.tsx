/** Uploading: choose or drop, then pause, resume and cancel; batches with their progress. */
import { useVirtualizer } from '@tanstack/react-virtual';
import { useRef, useState } from 'react';
import { bytes, countdown } from '../app/format';
import { BatchSummary } from '../batches/summary';
import { Button, Empty, Gauge, Heading, IconButton, Notice, Panel } from '../ui/controls';
import { Confirm } from '../ui/dialog';
import { Icon } from '../ui/icons';
import { Ago } from '../ui/time';
import { failed } from '../ui/toasts';
import { chooseFiles } from './choose';
import { UploadItem } from './items';
import { cancelAll, discardUnfinished, dismissEnded, isActive, pauseAll, resumeAll, useUploads, type Item } from './store';

export const UploadScreen = () => {
  const { items, unfinished } = useUploads();
  const active = items.filter(isActive);
  const batches = [...new Set(items.map(item => item.batchId).filter(id => id !== null))];
  return (
    <>
      <Heading title="Upload" note="Documents become searchable as soon as they are read." />
      <div className="grid gap-4">
        <div className="grid justify-items-center gap-3 rounded-lg border-2 border-dashed border-line bg-panel px-4 py-10 text-center">
          <Icon name="upload" width="28" height="28" className="text-brand" />
          <p>
            <strong>Drop files or folders here</strong>
            <br />
            <span className="text-soft">PDF, Word, PowerPoint, Excel, OpenDocument, mail, HTML, Markdown, text and images</span>
          </p>
          <div className="flex flex-wrap justify-center gap-2">
            <Button look="main" icon="upload" onClick={() => chooseFiles('files')}>
              Choose files
            </Button>
            <Button icon="folder" onClick={() => chooseFiles('folder')}>
              Choose a folder
            </Button>
          </div>
        </div>
        {unfinished.length > 0 && <UnfinishedUploads />}
        {items.length > 0 && (
          <Panel
            title="This visit"
            actions={
              <>
                {active.some(item => item.state !== 'paused') && (
                  <Button icon="pause" onClick={pauseAll}>
                    Pause all
                  </Button>
                )}
                {items.some(item => item.state === 'paused') && (
                  <Button icon="play" onClick={resumeAll}>
                    Resume all
                  </Button>
                )}
                {active.length > 0 && <CancelAll />}
                {items.length > active.length && <Button onClick={dismissEnded}>Dismiss what has ended</Button>}
              </>
            }
          >
            {active.length > 0 && <Totals items={items} />}
            <Items items={items} />
          </Panel>
        )}
        {batches.map(batchId => (
          <BatchSummary key={batchId} batchId={batchId} />
        ))}
        {items.length === 0 && unfinished.length === 0 && (
          <Panel>
            <Empty title="Nothing is being uploaded">Uploads continue where they were when the network comes back. After a reload, choose the same file again and it goes on.</Empty>
          </Panel>
        )}
      </div>
    </>
  );
};

const Totals = ({ items }: { items: Item[] }) => {
  const sent = items.reduce((sum, item) => sum + (item.state === 'done' ? item.size : item.sent), 0);
  const total = items.filter(item => item.state !== 'cancelled' && item.state !== 'failed').reduce((sum, item) => sum + item.size, 0);
  const speed = items.reduce((sum, item) => sum + (item.state === 'uploading' ? item.speed : 0), 0);
  return (
    <div className="grid gap-1.5 border-b border-line px-4 py-2.5">
      <Gauge value={sent} max={total} label="All uploads" />
      <p className="text-soft tabular-nums">
        {bytes(sent)} of {bytes(total)}
        {speed > 0 && ` · ${bytes(Math.round(speed))}/s · ${countdown(((total - sent) / speed) * 1000)} left`}
      </p>
    </div>
  );
};

/** Ten thousand files may be chosen at once: only those that are visible are drawn. */
const Items = ({ items }: { items: Item[] }) => {
  const frame = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({ count: items.length, getScrollElement: () => frame.current, estimateSize: () => 56, overscan: 8, getItemKey: index => items[index]?.id ?? index });
  return (
    <div ref={frame} tabIndex={0} role="region" aria-label="Uploads" className="max-h-[50dvh] overflow-y-auto">
      <ul className="relative" style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map(row => {
          const item = items[row.index];
          return (
            item && (
              <div key={row.key} ref={rows.measureElement} data-index={row.index} role="presentation" className="absolute inset-x-0 border-b border-line" style={{ transform: `translateY(${row.start}px)` }}>
                <UploadItem item={item} />
              </div>
            )
          );
        })}
      </ul>
    </div>
  );
};

const CancelAll = () => {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button look="danger" icon="close" onClick={() => setOpen(true)}>
        Cancel all
      </Button>
      <Confirm open={open} onOpenChange={setOpen} title="Cancel all uploads?" action="Cancel the uploads" onConfirm={cancelAll}>
        What was sent of them is deleted. Files that are uploaded already stay.
      </Confirm>
    </>
  );
};

const UnfinishedUploads = () => {
  const { unfinished } = useUploads();
  return (
    <Panel title="Unfinished uploads">
      <div className="grid gap-2 p-4">
        <Notice tone="warn">An earlier visit began these and did not finish them. Choose or drop the same files again: they continue where they were.</Notice>
        <ul className="divide-y divide-line">
          {unfinished.map(one => (
            <li key={one.uploadUrl} className="flex items-center gap-2 py-2">
              <span className="min-w-0 flex-1 truncate">
                {one.name} <span className="text-soft">({bytes(one.size)})</span>
              </span>
              <span className="text-soft">
                begun <Ago at={one.createdAt.toISOString()} />
              </span>
              <Button onClick={() => chooseFiles('files')}>Choose it again</Button>
              <IconButton icon="delete" label={`Discard ${one.name}`} onClick={() => void discardUnfinished(one).catch(failed)} />
            </li>
          ))}
        </ul>
      </div>
    </Panel>
  );
};
