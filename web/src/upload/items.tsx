/** One upload in a list, with its progress and its buttons. */
import { Link } from '@tanstack/react-router';
import { bytes, countdown } from '../app/format';
import { Badge, Gauge, IconButton, type Tone } from '../ui/controls';
import { cancelUpload, pauseUpload, resumeUpload, retryUpload, type Item } from './store';

const TONES: Record<Item['state'], Tone> = { waiting: 'calm', uploading: 'busy', paused: 'warn', offline: 'warn', done: 'good', failed: 'bad', cancelled: 'calm' };
const NAMES: Record<Item['state'], string> = {
  waiting: 'waits',
  uploading: 'uploading',
  paused: 'paused',
  offline: 'waits for the network',
  done: 'uploaded',
  failed: 'failed',
  cancelled: 'cancelled',
};

export const UploadItem = ({ item }: { item: Item }) => (
  <li className="grid gap-1 px-4 py-2.5">
    <div className="flex items-center gap-2">
      <span className="min-w-0 flex-1 truncate" title={item.path}>
        {item.fileId ? (
          <Link to="/files/$fileId" params={{ fileId: item.fileId }} className="hover:underline">
            {item.path}
          </Link>
        ) : (
          item.path
        )}
      </span>
      <Badge tone={TONES[item.state]}>{NAMES[item.state]}</Badge>
      {(item.state === 'uploading' || item.state === 'offline' || item.state === 'waiting') && <IconButton icon="pause" label={`Pause ${item.path}`} onClick={() => pauseUpload(item.id)} />}
      {item.state === 'paused' && <IconButton icon="play" label={`Resume ${item.path}`} onClick={() => resumeUpload(item.id)} />}
      {item.state === 'failed' && <IconButton icon="retry" label={`Send ${item.path} again`} onClick={() => retryUpload(item.id)} />}
      {!['done', 'failed', 'cancelled'].includes(item.state) && <IconButton icon="close" label={`Cancel ${item.path}`} onClick={() => void cancelUpload(item.id)} />}
    </div>
    {['uploading', 'paused', 'offline'].includes(item.state) && (
      <>
        <Gauge value={item.sent} max={item.size} label={`Upload of ${item.path}`} tone={item.state === 'uploading' ? 'brand' : 'warn'} />
        <p className="text-xs text-soft tabular-nums">
          {bytes(item.sent)} of {bytes(item.size)}
          {item.speed > 0 && item.state === 'uploading' && ` · ${bytes(Math.round(item.speed))}/s`}
          {item.timeLeft !== null && item.state === 'uploading' && ` · ${countdown(item.timeLeft)} left`}
        </p>
      </>
    )}
    {item.error && (
      <p role="alert" className="text-bad">
        {item.error}
      </p>
    )}
  </li>
);
