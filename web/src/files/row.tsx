/** One file in the list. */
import { Link } from '@tanstack/react-router';
import { memo, useState } from 'react';
import type { FileView } from '../api/types';
import { bytes } from '../app/format';
import { IconButton } from '../ui/controls';
import { Confirm } from '../ui/dialog';
import { Menu, type MenuItem } from '../ui/menu';
import { Ago } from '../ui/time';
import { canCancel, canDownload, canRetry, cancelFile, deleteFile, downloadFile, retryFile } from './actions';
import { Situation, StatusBadge } from './status';

export const GRID = 'grid grid-cols-[auto_minmax(0,1fr)_auto] sm:grid-cols-[auto_minmax(0,1fr)_6.5rem_6rem_6.5rem_2rem] items-start gap-x-3';

export const FileRow = memo(({ file, index, selected, onSelect, withOwner }: { file: FileView; index: number; selected: boolean; onSelect: (id: string, range: boolean) => void; withOwner: boolean }) => {
  const [deleting, setDeleting] = useState(false);
  const items: (MenuItem | 'line')[] = [
    { label: 'Retry', icon: 'retry', disabled: !canRetry(file), onSelect: () => void retryFile(file) },
    { label: 'Cancel', icon: 'cancel', disabled: !canCancel(file), onSelect: () => void cancelFile(file) },
    { label: 'Download', icon: 'download', disabled: !canDownload(file), onSelect: () => downloadFile(file) },
    'line',
    { label: 'Delete…', icon: 'delete', danger: true, onSelect: () => setDeleting(true) },
  ];
  return (
    <div role="row" aria-rowindex={index + 2} aria-selected={selected} data-row={index} className={`${GRID} border-b border-line px-3 py-2 hover:bg-sunken aria-selected:bg-brand-wash sm:px-4`}>
      <span role="cell" className="pt-0.5">
        <input
          type="checkbox"
          aria-label={`Select ${file.fileName}`}
          checked={selected}
          onChange={() => {}}
          onClick={event => onSelect(file.fileId, event.shiftKey)}
          className="size-4 accent-(--brand)"
        />
      </span>
      <div role="cell" className="min-w-0">
        <div className="flex min-w-0 items-baseline gap-2">
          <Link to="/files/$fileId" params={{ fileId: file.fileId }} data-row-link className="truncate font-medium hover:underline" title={file.fileName}>
            {file.fileName}
          </Link>
          {withOwner && (
            <span className="truncate text-xs text-soft" title={`${file.userId} of ${file.tenantId}`}>
              {file.userId} · {file.tenantId}
            </span>
          )}
        </div>
        <div className="text-[13px] leading-snug break-words empty:hidden">
          <Situation file={file} />
        </div>
        <div className="mt-0.5 flex items-center gap-3 text-xs text-soft sm:hidden">
          <StatusBadge status={file.status} /> {bytes(file.size)} <Ago at={file.createdAt} />
        </div>
      </div>
      <span role="cell" className="hidden pt-0.5 sm:block">
        <StatusBadge status={file.status} />
      </span>
      <span role="cell" className="hidden pt-0.5 text-right text-soft tabular-nums sm:block">
        {bytes(file.size)}
      </span>
      <span role="cell" className="hidden pt-0.5 text-right text-soft sm:block">
        <Ago at={file.createdAt} />
      </span>
      <span role="cell">
        <Menu label={`Actions for ${file.fileName}`} trigger={<IconButton icon="more" label={`Actions for ${file.fileName}`} className="-my-1" />} items={items} />
      </span>
      {deleting && (
        <Confirm open onOpenChange={setDeleting} title={`Delete ${file.fileName}?`} action="Delete" onConfirm={() => deleteFile(file)}>
          The file, its text and its search entries are deleted. This cannot be undone.
        </Confirm>
      )}
    </div>
  );
});
