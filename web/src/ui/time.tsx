import { useNow } from '../app/clock';
import { ago, countdown, exact, span } from '../app/format';

/** A relative time; the exact one on hover. */
export const Ago = ({ at }: { at: string }) => {
  const now = useNow();
  return (
    <time dateTime={at} title={exact(at)} className="whitespace-nowrap">
      {ago(at, now)}
    </time>
  );
};

/** The time until an instant. It runs. */
export const Countdown = ({ to }: { to: string }) => {
  const now = useNow();
  const left = Date.parse(to) - now;
  return (
    <time dateTime={to} title={exact(to)} className="whitespace-nowrap tabular-nums">
      {left > 0 ? `in ${countdown(left)}` : 'now'}
    </time>
  );
};

/** How long something has lasted. It runs. */
export const Since = ({ at }: { at: string }) => {
  const now = useNow();
  return (
    <time dateTime={at} title={exact(at)} className="whitespace-nowrap tabular-nums">
      {span(now - Date.parse(at))}
    </time>
  );
};
