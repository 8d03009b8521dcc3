/**
 * Charts of values by the hour. Hover, touch or the arrow keys choose an hour, whose values are written below. The sentence and the
 * table say the same without the picture.
 */
import { useEffect, useId, useRef, useState, type KeyboardEvent, type PointerEvent } from 'react';
import { join } from './controls';
import { Scroll } from './table';

export interface Series {
  name: string;
  /** `null`: there is no value. */
  values: readonly (number | null)[];
  color: 'good' | 'bad' | 'brand' | 'busy' | 'warn';
  /** Bars are stacked on each other. */
  kind: 'bar' | 'line';
  /** Hatched or dashed, so that colour is not all that tells it from the others. */
  marked?: boolean;
}

const HEIGHT = 168;
const TOP = 10;
const BOTTOM = 22;
const LEFT = 54;
const RIGHT = 8;
const PLOT = HEIGHT - TOP - BOTTOM;

/** A round number that is not below the value. */
export const ceiling = (value: number): number => {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 4, 6, 8, 10].find(step => step * power >= value) ?? 10) * power;
};

const useWidth = () => {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(600);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(Math.max(220, element.clientWidth)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return { box, width };
};

const clockTime = (at: string) => new Date(at).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
const dayOf = (at: string) => new Date(at).toLocaleDateString('en-GB', { weekday: 'short', day: 'numeric' }).replace(',', '');
export const hourName = (at: string) => `${dayOf(at)}, ${clockTime(at)}`;

export const Chart = ({ title, summary, hours, series, format, max }: { title: string; summary: string; hours: readonly string[]; series: readonly Series[]; format: (value: number) => string; max?: number }) => {
  const id = useId();
  const { box, width } = useWidth();
  const [chosen, setChosen] = useState<number | null>(null);
  const count = hours.length;
  const bars = series.filter(one => one.kind === 'bar');
  const lines = series.filter(one => one.kind === 'line');
  const stacked = hours.map((_, hour) => bars.reduce((sum, one) => sum + (one.values[hour] ?? 0), 0));
  const top = max ?? ceiling(Math.max(0, ...stacked, ...lines.flatMap(one => one.values.map(value => value ?? 0))));
  const step = (width - LEFT - RIGHT) / Math.max(1, count);
  const x = (hour: number) => LEFT + step * hour;
  const y = (value: number) => TOP + PLOT * (1 - Math.min(value, top) / top);
  const current = Math.min(chosen ?? count - 1, count - 1);
  const valuesAt = (hour: number) => series.map(one => `${one.name} ${one.values[hour] == null ? 'none' : format(one.values[hour])}`).join(', ');

  const point = (event: PointerEvent<SVGSVGElement>) => {
    const hour = Math.floor((event.clientX - event.currentTarget.getBoundingClientRect().left - LEFT) / step);
    setChosen(Math.max(0, Math.min(count - 1, hour)));
  };
  const press = (event: KeyboardEvent) => {
    const moves: Record<string, number> = { ArrowLeft: current - 1, ArrowDown: current - 1, ArrowRight: current + 1, ArrowUp: current + 1, PageDown: current - 6, PageUp: current + 6, Home: 0, End: count - 1 };
    const to = moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    setChosen(Math.max(0, Math.min(count - 1, to)));
  };

  if (count === 0) return null;
  return (
    <figure className="min-w-0 px-4 py-3">
      <figcaption>
        <h3 className="font-semibold">{title}</h3>
        <p id={`${id}-summary`} className="text-soft">
          {summary}
        </p>
      </figcaption>
      <Legend series={series} id={id} />
      <div ref={box} className="mt-1">
        <svg
          width={width}
          height={HEIGHT}
          tabIndex={0}
          role="slider"
          aria-label={`${title}, hour`}
          aria-describedby={`${id}-summary`}
          aria-valuemin={0}
          aria-valuemax={count - 1}
          aria-valuenow={current}
          aria-valuetext={`${hourName(hours[current]!)}: ${valuesAt(current)}`}
          onPointerMove={point}
          onPointerDown={point}
          onPointerLeave={() => setChosen(null)}
          onKeyDown={press}
          className="block max-w-full touch-pan-y text-xs"
        >
          <Hatch id={id} />
          {[0, 0.5, 1].map(share => (
            <g key={share}>
              <line x1={LEFT} x2={width - RIGHT} y1={y(top * share)} y2={y(top * share)} stroke="var(--line)" />
              <text x={LEFT - 6} y={y(top * share) + 4} textAnchor="end" fill="var(--soft)">
                {format(top * share)}
              </text>
            </g>
          ))}
          <Ticks hours={hours} x={x} step={step} width={width} />
          <rect x={x(current)} y={TOP} width={step} height={PLOT} fill="var(--sunken)" />
          {hours.map((hour, index) => {
            let below = 0;
            return bars.map(one => {
              const value = one.values[index] ?? 0;
              const [from, to] = [y(below), y(below + value)];
              below += value;
              return value > 0 && <rect key={`${hour} ${one.name}`} data-bar x={x(index) + step * 0.12} width={Math.max(1, step * 0.76)} y={to} height={Math.max(1, from - to)} fill={one.marked ? `url(#${id}-hatch-${one.color})` : `var(--${one.color})`} />;
            });
          })}
          {lines.map(one => (
            <g key={one.name}>
              <path d={lineOf(one.values, index => x(index) + step / 2, y)} fill="none" stroke={`var(--${one.color})`} strokeWidth="2" strokeLinejoin="round" strokeDasharray={one.marked ? '5 4' : undefined} />
              {one.values.map((value, index) => value !== null && isAlone(one.values, index) && <circle key={index} cx={x(index) + step / 2} cy={y(value)} r="2.5" fill={`var(--${one.color})`} />)}
              {one.values[current] != null && <circle cx={x(current) + step / 2} cy={y(one.values[current])} r="3.5" fill={`var(--${one.color})`} />}
            </g>
          ))}
        </svg>
      </div>
      <p className="tabular-nums" aria-hidden="true">
        <span className="font-medium">{hourName(hours[current]!)}</span> <span className="text-soft">{valuesAt(current)}</span>
      </p>
      <Data title={title} hours={hours} series={series} format={format} />
    </figure>
  );
};

const isAlone = (values: readonly (number | null)[], index: number) => values[index - 1] == null && values[index + 1] == null;

/** A line with a gap where there is no value. */
const lineOf = (values: readonly (number | null)[], x: (index: number) => number, y: (value: number) => number) =>
  values
    .map((value, index) => (value === null ? '' : `${values[index - 1] == null ? 'M' : 'L'}${x(index).toFixed(1)} ${y(value).toFixed(1)}`))
    .join('');

const Hatch = ({ id }: { id: string }) => (
  <defs>
    {(['bad', 'warn', 'busy'] as const).map(color => (
      <pattern key={color} id={`${id}-hatch-${color}`} width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect width="5" height="5" fill={`var(--${color}-wash)`} />
        <rect width="3" height="5" fill={`var(--${color})`} />
      </pattern>
    ))}
  </defs>
);

const Ticks = ({ hours, x, step, width }: { hours: readonly string[]; x: (index: number) => number; step: number; width: number }) => {
  const isLong = hours.length > 48;
  const every = isLong ? 24 : 6;
  const marked = hours.map((hour, index) => ({ hour, index })).filter(({ hour }) => new Date(hour).getHours() % every === 0);
  // Labels that would touch each other are left out.
  const fits = Math.max(1, Math.ceil(52 / Math.max(1, step * every)));
  return marked
    .filter((_, index) => index % fits === 0)
    .map(({ hour, index }) => (
      <text key={hour} x={Math.min(x(index) + step / 2, width - 20)} y={HEIGHT - 6} textAnchor="middle" fill="var(--soft)">
        {isLong ? dayOf(hour) : clockTime(hour)}
      </text>
    ));
};

const Legend = ({ series, id }: { series: readonly Series[]; id: string }) => (
  <ul className="mt-2 flex flex-wrap gap-x-4 gap-y-1">
    {series.map(one => (
      <li key={one.name} className="flex items-center gap-1.5">
        <svg width="18" height="10" aria-hidden="true">
          {one.kind === 'bar' ? (
            <rect width="18" height="10" rx="2" fill={one.marked ? `url(#${id}-hatch-${one.color})` : `var(--${one.color})`} />
          ) : (
            <line x1="0" x2="18" y1="5" y2="5" stroke={`var(--${one.color})`} strokeWidth="2" strokeDasharray={one.marked ? '5 4' : undefined} />
          )}
        </svg>
        {one.name}
      </li>
    ))}
  </ul>
);

const Data = ({ title, hours, series, format }: { title: string; hours: readonly string[]; series: readonly Series[]; format: (value: number) => string }) => (
  <details className="mt-1">
    <summary className="w-fit cursor-pointer py-0.5 text-brand">Values as a table</summary>
    <Scroll label={`${title}: values`} className="mt-2 max-h-64 overflow-y-auto">
      <table className="w-full" aria-label={title}>
        <thead>
          <tr className="text-left text-soft">
            <th scope="col" className="py-1 pr-3">
              Hour
            </th>
            {series.map(one => (
              <th key={one.name} scope="col" className="py-1 pr-3 text-right">
                {one.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {/* What was last is read first. */}
          {hours.map((hour, index) => ({ hour, index })).reverse().map(({ hour, index }) => (
            <tr key={hour} className="border-t border-line">
              <th scope="row" className="py-1 pr-3 text-left font-normal whitespace-nowrap">
                {hourName(hour)}
              </th>
              {series.map(one => (
                <td key={one.name} className="py-1 pr-3 text-right tabular-nums">
                  {one.values[index] == null ? '–' : format(one.values[index])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  </details>
);

/** Bars for the last hours, in the height of two lines. The sentence is what a screen reader says, and what hover shows. */
export const Sparkline = ({ values, summary, className }: { values: readonly number[]; summary: string; className?: string }) => {
  const most = Math.max(1, ...values);
  return (
    <svg viewBox={`0 0 ${values.length * 5} 32`} width={values.length * 5} height="32" role="img" aria-label={summary} className={join('text-bad', className)}>
      <title>{summary}</title>
      <line x1="0" x2={values.length * 5} y1="31.5" y2="31.5" stroke="var(--soft)" />
      {values.map((value, index) => value > 0 && <rect key={index} data-bar x={index * 5 + 0.5} width="4" y={31 - Math.max(2, (value / most) * 30)} height={Math.max(2, (value / most) * 30)} fill="currentColor" />)}
    </svg>
  );
};
