/** How numbers, sizes and times are written. */

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'];

export const bytes = (value: number): string => {
  let unit = 0;
  let amount = value;
  while (amount >= 1023.95 && unit < UNITS.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  return `${unit ? amount.toFixed(1).replace(/\.0$/, '') : amount} ${UNITS[unit]}`;
};

export const number = (value: number): string => value.toLocaleString('en');

export const count = (value: number, what: string, plural = `${what}s`): string => `${number(value)} ${value === 1 ? what : plural}`;

const STEPS: [limit: number, unit: number, name: string][] = [
  [60, 1, 's'],
  [3_600, 60, 'min'],
  [86_400, 3_600, 'h'],
  [86_400 * 60, 86_400, 'd'],
];

/** A span of time in one unit: `40 s`, `12 min`, `3 h`, `5 d`. */
export const span = (ms: number): string => {
  const seconds = Math.max(0, ms) / 1000;
  for (const [limit, unit, name] of STEPS) if (seconds < limit) return `${Math.floor(seconds / unit)} ${name}`;
  return `${Math.floor(seconds / 86_400 / 30)} months`;
};

/** How long something took: with more digits below a second. */
export const duration = (ms: number): string => {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
};

export const ago = (iso: string, now: number): string => {
  const ms = now - Date.parse(iso);
  if (Math.abs(ms) < 10_000) return 'just now';
  return ms >= 0 ? `${span(ms)} ago` : `in ${span(-ms)}`;
};

/** A countdown: `0:09`, `2:30`, then in one unit. */
export const countdown = (ms: number): string => {
  const seconds = Math.ceil(Math.max(0, ms) / 1000);
  if (seconds >= 3600) return span(seconds * 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
};

export const exact = (iso: string): string =>
  new Date(iso).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

export const percent = (share: number): string => `${share >= 10 || share === 0 ? Math.round(share) : share.toFixed(1)} %`;
