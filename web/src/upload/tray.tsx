/** What is being uploaded, at the foot of every screen except that of uploads. The whole window takes files that are dropped. */
import { Link, useRouterState } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { bytes, count } from '../app/format';
import { Button, Gauge } from '../ui/controls';
import { filesFromDrop, hasFiles } from './choose';
import { addUploads, dismissEnded, isActive, useUploads } from './store';

export const UploadTray = () => {
  const { items } = useUploads();
  const isOnScreen = useRouterState({ select: state => state.location.pathname.endsWith('/upload') });
  const dragging = useWindowDrop();
  const active = items.filter(isActive);
  const failed = items.filter(item => item.state === 'failed').length;
  const [sent, total] = [items.reduce((sum, item) => sum + (item.state === 'done' ? item.size : item.sent), 0), items.reduce((sum, item) => sum + item.size, 0)];
  return (
    <>
      {dragging && (
        <div className="pointer-events-none fixed inset-3 z-[65] grid place-items-center rounded-xl border-2 border-dashed border-brand bg-brand-wash/90 text-lg font-semibold text-brand">Drop files or folders to upload them</div>
      )}
      {items.length > 0 && !isOnScreen && (
        <div className="sticky bottom-0 z-20 grid gap-1.5 border-t border-line bg-panel px-3 py-2 sm:px-5">
          <div className="flex items-center justify-between gap-2">
            <p role="status" className="min-w-0 truncate">
              {active.length > 0 ? `Uploading ${count(active.length, 'file')}: ${bytes(sent)} of ${bytes(total)}` : `${count(items.length - failed, 'file')} uploaded`}
              {failed > 0 && <span className="text-bad"> · {failed} failed</span>}
            </p>
            <div className="flex shrink-0 gap-2">
              <Link to="/upload" className="inline-flex min-h-8 items-center rounded-md border border-line px-3 font-medium hover:bg-sunken">
                Details
              </Link>
              {active.length === 0 && <Button onClick={dismissEnded}>Dismiss</Button>}
            </div>
          </div>
          {active.length > 0 && <Gauge value={sent} max={total} label="All uploads" />}
        </div>
      )}
    </>
  );
};

const useWindowDrop = () => {
  const [dragging, setDragging] = useState(false);
  useEffect(() => {
    let depth = 0;
    const enter = (event: DragEvent) => {
      if (!hasFiles(event.dataTransfer)) return;
      depth += 1;
      setDragging(true);
    };
    const leave = (event: DragEvent) => {
      if (!hasFiles(event.dataTransfer)) return;
      depth = Math.max(0, depth - 1);
      if (depth === 0) setDragging(false);
    };
    const over = (event: DragEvent) => {
      if (hasFiles(event.dataTransfer)) event.preventDefault();
    };
    const drop = (event: DragEvent) => {
      depth = 0;
      setDragging(false);
      if (!event.dataTransfer || !hasFiles(event.dataTransfer)) return;
      event.preventDefault();
      void filesFromDrop(event.dataTransfer).then(addUploads);
    };
    addEventListener('dragenter', enter);
    addEventListener('dragleave', leave);
    addEventListener('dragover', over);
    addEventListener('drop', drop);
    return () => {
      removeEventListener('dragenter', enter);
      removeEventListener('dragleave', leave);
      removeEventListener('dragover', over);
      removeEventListener('drop', drop);
    };
  }, []);
  return dragging;
};
