/** The icons, drawn on a grid of 20. They are decoration: what they mean is always written beside them or in a label. */
import type { SVGProps } from 'react';

const PATHS = {
  upload: 'M10 13V3m-4 4 4-4 4 4M3 13v3a1 1 0 0 0 1 1h12a1 1 0 0 0 1-1v-3',
  files: 'M5 2.5h6l4 4V17a.5.5 0 0 1-.5.5h-9.5A.5.5 0 0 1 4.500 17V3a.5.5 0 0 1 .5-.5ZM11 2.500V7h4.500',
  search: 'M8.500 14a5.500 5.500 0 1 0 0-11 5.500 5.500 0 0 0 0 11Zm4-1.500L17 17',
  batches: 'M10 2.500 17 6l-7 3.500L3 6l7-3.500ZM3 10l7 3.500L17 10M3 14l7 3.500L17 14',
  failures: 'M10 3 18 16.500H2L10 3Zm0 5v4m0 2v.5',
  blockers: 'M10 17.500a7.500 7.500 0 1 0 0-15 7.500 7.500 0 0 0 0 15ZM7 7v6m6-6v6',
  operations: 'M3 17h14M5 14V9m4 5V4m4 10V7m4 7v-3',
  workers: 'M4 4h12v8H4zM7 16h6m-3-4v4',
  jobs: 'M10 17.500a7.500 7.500 0 1 0 0-15 7.500 7.500 0 0 0 0 15ZM10 6v4l3 2',
  webhooks: 'M7 12a4 4 0 1 1 4-4m2 0 3 5.500a3.500 3.500 0 1 1-3 2M4 14.500h6',
  bell: 'M5 13V9a5 5 0 0 1 10 0v4l1.500 2h-13L5 13Zm3.500 4h3',
  quota: 'M3 6c0-2 14-2 14 0s-14 2-14 0Zm0 0v8c0 2 14 2 14 0V6M3 10c0 2 14 2 14 0',
  keys: 'M12.500 11.500a4 4 0 1 0-3.800-2.700L3 14.500V17h3v-2h2l1.700-3.700a4 4 0 0 0 2.800.2ZM13.500 6.500v.1',
  audit: 'M6 3h8v14H6zM8.500 7h3m-3 3h3m-3 3h3',
  settings: 'M3 6h8m4 0h2M3 14h2m4 0h8M13 4v4M7 12v4',
  embedding: 'M4 10a6 6 0 0 1 10.500-4L17 8m0-5v5h-5m4 2a6 6 0 0 1-10.500 4L3 12m0 5v-5h5',
  orphans: 'M6 17h8a1 1 0 0 0 1-1V7H5v9a1 1 0 0 0 1 1ZM3.500 5h13M8 5V3h4v2',
  retry: 'M16 10a6 6 0 1 1-2-4.500L16.500 8m0-5v5h-5',
  cancel: 'M10 17.500a7.500 7.500 0 1 0 0-15 7.500 7.500 0 0 0 0 15ZM5 15 15 5',
  delete: 'M4 6h12M8 6V4h4v2m-6.500 0L6 17h8l.5-11',
  download: 'M10 3v10m-4-4 4 4 4-4M3 16.500h14',
  close: 'm5 5 10 10M15 5 5 15',
  check: 'm4 10.500 4 4 8-9',
  menu: 'M3 5h14M3 10h14M3 15h14',
  more: 'M5 10h.01M10 10h.01M15 10h.01',
  down: 'm5 8 5 5 5-5',
  up: 'm5 12 5-5 5 5',
  left: 'm12 5-5 5 5 5',
  right: 'm8 5 5 5-5 5',
  play: 'M6 4v12l10-6L6 4Z',
  pause: 'M6 4v12m8-12v12',
  sun: 'M10 13.500a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7ZM10 2v1.500m0 13V18M2 10h1.500m13 0H18M4.300 4.300l1 1m9.400 9.400 1 1m0-11.400-1 1m-9.400 9.400-1 1',
  warning: 'M10 3 18 16.500H2L10 3Zm0 5v4m0 2v.5',
  info: 'M10 17.500a7.500 7.500 0 1 0 0-15 7.500 7.500 0 0 0 0 15ZM10 9v5m0-7.500v.1',
  link: 'M8 12l4-4m-5 1-2 2a3 3 0 0 0 4 4l2-2m0-6 2-2a3 3 0 0 1 4 4l-2 2',
  folder: 'M3 5h5l2 2h7v9H3V5Z',
  copy: 'M7 7h9v10H7zM4 13V3h9',
} as const;

export type IconName = keyof typeof PATHS;

export const Icon = ({ name, ...props }: { name: IconName } & SVGProps<SVGSVGElement>) => (
  <svg
    viewBox="0 0 20 20"
    width="16"
    height="16"
    fill="none"
    stroke="currentColor"
    strokeWidth={name === 'more' ? 2.6 : 1.6}
    strokeLinecap="round"
    strokeLinejoin="round"
    aria-hidden="true"
    {...props}
  >
    <path d={PATHS[name]} />
  </svg>
);
