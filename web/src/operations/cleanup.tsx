/** What the jobs could not clean. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { landfall } from '../api/client';
import { count, number } from '../app/format';
import { Answer } from '../ui/answer';
import { Panel } from '../ui/controls';
import { Table, type Column } from '../ui/table';
import { Ago } from '../ui/time';
import type { components } from '@landfall/client/schema';

type Item = components['schemas']['CleanupFailure'];

const COLUMNS: readonly Column<Item>[] = [
  {
    head: 'Item',
    bare: true,
    cell: item => (
      <>
        {item.fileId ? (
          <Link to="/files/$fileId" params={{ fileId: item.fileId }} className="break-all text-brand underline">
            {item.subject}
          </Link>
        ) : (
          <span className="break-all">{item.subject}</span>
        )}
        <p className="text-bad">{item.error}</p>
      </>
    ),
  },
  { head: 'Job', cell: item => item.scope },
  { head: 'Attempts', numeric: true, cell: item => number(item.attempts) },
  { head: 'First', cell: item => <Ago at={item.firstAt} /> },
  { head: 'Last', cell: item => <Ago at={item.lastAt} /> },
];

export const CleanupFailures = () => {
  const query = useQuery({ queryKey: ['cleanup-failures'], queryFn: ({ signal }) => landfall.get('/api/v2/admin/cleanup-failures', { query: { limit: 200 }, signal }) });
  return (
    <Panel title="What could not be cleaned">
      <Answer query={query}>
        {({ failures, total }) =>
          failures.length === 0 ? (
            <p className="px-4 py-3 text-soft">Nothing. Items that cannot be cleaned are listed here until they are clean.</p>
          ) : (
            <>
              <p className="px-4 pt-3">{count(total, 'item')} could not be cleaned. The jobs try again by themselves.</p>
              <Table label="What could not be cleaned" columns={COLUMNS} rows={failures} keyOf={item => `${item.scope} ${item.subject}`} />
              {failures.length < total && <p className="border-t border-line px-4 py-2 text-soft">The {number(failures.length)} that wait longest are listed.</p>}
            </>
          )
        }
      </Answer>
    </Panel>
  );
};
