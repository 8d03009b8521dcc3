/** Tables that become cards where the screen is narrow, and lists of names with values. */
import { Fragment, useEffect, useRef, useState, type ReactNode } from 'react';
import { join } from './controls';

export interface Column<T> {
  head: string;
  cell: (row: T) => ReactNode;
  /** Numbers are aligned at their end. */
  numeric?: boolean;
  /** The cell needs no label on a card, because it names the row or has its buttons. */
  bare?: boolean;
  className?: string;
}

/** Whether the content is larger than its box: only then the box must be reachable by keyboard. */
export const useOverflow = () => {
  const box = useRef<HTMLDivElement>(null);
  const [overflows, setOverflows] = useState(false);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = () => setOverflows(element.scrollWidth > element.clientWidth + 1 || element.scrollHeight > element.clientHeight + 1);
    const observer = new ResizeObserver(look);
    observer.observe(element);
    for (const child of element.children) observer.observe(child);
    look();
    return () => observer.disconnect();
  }, []);
  return { box, overflows };
};

/** A part of the screen that scrolls by itself. */
export const Scroll = ({ label, children, className }: { label: string; children: ReactNode; className?: string }) => {
  const { box, overflows } = useOverflow();
  return (
    <div ref={box} {...(overflows ? { role: 'region', 'aria-label': label, tabIndex: 0 } : {})} className={join('relative overflow-x-auto', className)}>
      {children}
    </div>
  );
};

/** The roles are written out, because a table that is not displayed as one would lose them. */
export const Table = <T,>({
  label,
  columns,
  rows,
  keyOf,
  below,
}: {
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string | number;
  /** More of a row, in a row of its own. */
  below?: (row: T) => ReactNode;
}) => (
  <Scroll label={label}>
    <table role="table" aria-label={label} className="w-full border-collapse max-sm:block">
      <thead role="rowgroup" className="max-sm:sr-only">
        <tr role="row">
          {columns.map(column => (
            <th key={column.head} role="columnheader" scope="col" className={join('px-4 py-2 text-left text-xs font-semibold whitespace-nowrap text-soft', column.numeric && 'text-right')}>
              {column.bare && column.head === 'Actions' ? <span className="sr-only">{column.head}</span> : column.head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup" className="max-sm:block">
        {rows.map(row => {
          const more = below?.(row);
          return (
            <Fragment key={keyOf(row)}>
              <tr role="row" className="border-t border-line max-sm:grid max-sm:gap-1 max-sm:px-4 max-sm:py-3">
                {columns.map(column => (
                  <td
                    key={column.head}
                    role="cell"
                    className={join(
                      'px-4 py-2 align-top max-sm:flex max-sm:min-w-0 max-sm:gap-3 max-sm:p-0',
                      column.numeric && 'text-right tabular-nums max-sm:text-left',
                      column.className,
                    )}
                  >
                    {!column.bare && (
                      <span aria-hidden="true" className="w-28 shrink-0 text-soft sm:hidden">
                        {column.head}
                      </span>
                    )}
                    <div className="min-w-0 break-words">{column.cell(row)}</div>
                  </td>
                ))}
              </tr>
              {more && (
                <tr role="row" className="max-sm:block">
                  <td role="cell" colSpan={columns.length} className="px-4 pb-3 max-sm:block">
                    {more}
                  </td>
                </tr>
              )}
            </Fragment>
          );
        })}
      </tbody>
    </table>
  </Scroll>
);

/** Names with their values. Those without a value are left out. */
export const Facts = ({ facts, className }: { facts: readonly (readonly [name: string, value: ReactNode])[]; className?: string }) => (
  <dl className={join('grid grid-cols-[minmax(6rem,max-content)_minmax(0,1fr)] gap-x-4 gap-y-1.5', className)}>
    {facts
      .filter(([, value]) => value !== null && value !== undefined && value !== false && value !== '')
      .map(([name, value]) => (
        <Fragment key={name}>
          <dt className="text-soft">{name}</dt>
          <dd className="min-w-0 break-words">{value}</dd>
        </Fragment>
      ))}
  </dl>
);

/** A number that matters, with its name; a link where there is more to see. */
export const Tiles = ({ children }: { children: ReactNode }) => <dl className="grid grid-cols-2 gap-3 sm:grid-cols-3 2xl:grid-cols-6">{children}</dl>;

export const Tile = ({ name, value, note, tone }: { name: string; value: ReactNode; note?: ReactNode; tone?: 'bad' | 'warn' }) => (
  <div className="rounded-lg border border-line bg-panel px-4 py-3">
    <dt className="text-soft">{name}</dt>
    <dd className={join('text-xl font-semibold tabular-nums', tone === 'bad' && 'text-bad', tone === 'warn' && 'text-warn')}>{value}</dd>
    {note && <dd className="text-xs text-soft">{note}</dd>}
  </div>
);
