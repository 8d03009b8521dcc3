/** A line above the files when something holds many of them back. It comes from the server, so no filter hides it. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { landfall } from '../api/client';
import { count } from '../app/format';
import { useScope } from '../app/scope';
import { Notice } from '../ui/controls';
import { Countdown } from '../ui/time';

const HOLDING = ['circuit', 'paused', 'no_workers', 'rate_limit', 'stuck'];

export const useBlockers = (everyMs = 15_000) => {
  const scope = useScope();
  return useQuery({
    queryKey: ['blockers', scope],
    queryFn: ({ signal }) => landfall.get('/api/v2/uploads/blockers', { query: scope === 'own' ? {} : { scope }, signal }),
    refetchInterval: everyMs,
  });
};

export const Blocked = () => {
  const holding = useBlockers().data?.blockers.filter(one => HOLDING.includes(one.kind) && one.files > 0) ?? [];
  if (holding.length === 0) return null;
  return (
    <div className="mb-3 grid gap-2">
      {holding.slice(0, 3).map((one, index) => (
        <Notice
          key={index}
          tone="warn"
          actions={
            <Link to="/waiting" className="underline">
              Why?
            </Link>
          }
        >
          <strong>{count(one.files, 'file')}</strong> {one.files === 1 ? 'waits' : 'wait'}: {one.message}
          {one.until && (
            <>
              {' '}
              Next try <Countdown to={one.until} />.
            </>
          )}
        </Notice>
      ))}
    </div>
  );
};
