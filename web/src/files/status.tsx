/** The state of a file: in a word, and in a sentence if it waits. */
import { hasEnded, type FileStatus, type FileView } from '../api/types';
import { Badge, type Tone } from '../ui/controls';
import { Icon } from '../ui/icons';
import { Countdown, Since } from '../ui/time';

const TONES: Record<FileStatus, Tone> = {
  registered: 'calm',
  uploaded: 'calm',
  queued: 'busy',
  scanning: 'busy',
  extracting: 'busy',
  chunking: 'busy',
  embedding: 'busy',
  ready: 'good',
  failed: 'bad',
  cancelled: 'calm',
  deleted: 'calm',
};

export const StatusBadge = ({ status }: { status: FileStatus }) => <Badge tone={TONES[status]}>{status}</Badge>;

/** What the file waits for, for how long, which attempt it is, and when it goes on; or why it failed. */
export const Situation = ({ file }: { file: FileView }) => {
  const isOver = hasEnded(file.status);
  return (
    <>
      {file.error && (
        <span className="text-bad">
          {file.error.message}
        </span>
      )}
      {!file.error && file.waitingMessage && !file.staleness.stale && (
        <span className="text-soft">
          {file.waitingMessage}.
          {!file.inflight && !file.retryAt && (
            <>
              {' '}
              Waiting for <Since at={file.updatedAt} />.
            </>
          )}
        </span>
      )}
      {!isOver && (file.attempt > 1 || file.inflight) && (
        <span className="text-soft">
          {' '}
          Attempt {Math.max(1, file.inflight?.attempt ?? file.attempt)} of {file.maxAttempts}
          {file.inflight?.startedAt && (
            <>
              , for <Since at={file.inflight.startedAt} />
            </>
          )}
          .
        </span>
      )}
      {!isOver && file.retryAt && (
        <span className="text-soft">
          {' '}
          Goes on <Countdown to={file.retryAt} />.
        </span>
      )}
      {file.staleness.stale && (
        <span className="inline-flex items-center gap-1 text-warn">
          <Icon name="warning" width="14" height="14" /> {file.staleness.message ?? 'It makes no progress'}.
        </span>
      )}
      {(file.warningCount ?? 0) > 0 && (
        <span className="inline-flex items-center gap-1 text-warn">
          <Icon name="warning" width="14" height="14" /> {file.warningCount === 1 ? 'Something is missing in it' : `${file.warningCount} things are missing in it`}
        </span>
      )}
    </>
  );
};
