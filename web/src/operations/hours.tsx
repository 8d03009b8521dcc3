/** The queue by the hour, for operators. */
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { landfall } from '../api/client';
import type { Hour, QueueStatus } from '../api/reports';
import { count, duration, number, percent } from '../app/format';
import { Answer } from '../ui/answer';
import { Chart } from '../ui/chart';
import { join, Panel } from '../ui/controls';
import { Segments } from '../ui/fields';
import { Circuits, Stages, Workers } from './machinery';

const REFRESH_MS = 10_000;
const route = getRouteApi('/overview');

export const Hours = () => {
  const { days } = route.useSearch();
  const navigate = route.useNavigate();
  const hours = days === 7 ? 168 : 24;
  const query = useQuery({ queryKey: ['queue-status', hours], queryFn: ({ signal }) => landfall.get('/api/v2/admin/queue-status', { query: { hours }, signal }), refetchInterval: REFRESH_MS });
  return (
    <>
      <Panel
        title="All files by the hour"
        actions={
          <Segments
            label="Time"
            value={days ?? 1}
            options={[
              [1, '24 hours'],
              [7, '7 days'],
            ]}
            onChange={value => void navigate({ search: before => ({ ...before, days: value === 7 ? 7 : undefined }) })}
          />
        }
      >
        <Answer query={query}>{status => <Charts status={status} hours={hours} />}</Answer>
      </Panel>
      {query.data && (
        <>
          <Stages queues={query.data.queues} />
          <Workers workers={query.data.workers} />
          <Circuits circuits={query.data.circuits} />
        </>
      )}
    </>
  );
};

const failureRate = (hour: Hour) => (hour.completed + hour.failed === 0 ? null : (hour.failed / (hour.completed + hour.failed)) * 100);

const Charts = ({ status: { recentHours, throughput }, hours }: { status: QueueStatus; hours: number }) => {
  // The server names the newest hour first; a chart is read from the left.
  const shown = [...recentHours].sort((a, b) => Date.parse(a.hour) - Date.parse(b.hour)).slice(-hours);
  const names = shown.map(hour => hour.hour);
  const ready = shown.reduce((sum, hour) => sum + hour.completed, 0);
  const failed = shown.reduce((sum, hour) => sum + hour.failed, 0);
  const worst = shown.reduce((most, hour) => Math.max(most, failureRate(hour) ?? 0), 0);
  const time = hours === 24 ? 'the last 24 hours' : 'the last 7 days';
  if (shown.length === 0) return <p className="px-4 py-3 text-soft">Nothing was processed in {time}.</p>;
  return (
    <div className={join('grid grid-cols-1 divide-line', hours > 24 ? 'divide-y' : 'max-xl:divide-y xl:grid-cols-3 xl:divide-x')}>
      <Chart
        title="Files that ended"
        summary={`${count(ready, 'file')} became ready and ${number(failed)} failed in ${time}.`}
        hours={names}
        format={value => number(Math.round(value * 10) / 10)}
        series={[
          { name: 'ready', kind: 'bar', color: 'good', values: shown.map(hour => hour.completed) },
          { name: 'failed', kind: 'bar', color: 'bad', marked: true, values: shown.map(hour => hour.failed) },
        ]}
      />
      <Chart
        title="From confirm to ready"
        summary={throughput.p50Ms == null ? `No file became ready in ${time}.` : `Half of the files took up to ${duration(throughput.p50Ms)}, 95 % up to ${duration(throughput.p95Ms ?? throughput.p50Ms)}.`}
        hours={names}
        format={value => (value === 0 ? '0' : duration(value))}
        series={[
          { name: 'p50', kind: 'line', color: 'brand', values: shown.map(hour => hour.p50Ms ?? null) },
          { name: 'p95', kind: 'line', color: 'busy', marked: true, values: shown.map(hour => hour.p95Ms ?? null) },
        ]}
      />
      <Chart
        title="Failure rate"
        summary={ready + failed === 0 ? `No file ended in ${time}.` : `${percent((failed / (ready + failed)) * 100)} of the files failed in ${time}; in the worst hour ${percent(worst)}.`}
        hours={names}
        format={percent}
        max={worst <= 10 ? 10 : 100}
        series={[{ name: 'failed', kind: 'line', color: 'bad', values: shown.map(failureRate) }]}
      />
    </div>
  );
};
