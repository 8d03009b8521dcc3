/** What is left over in the storage and in the database. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { landfall, queries } from '../api/client';
import { bytes, number, span } from '../app/format';
import { useScope } from '../app/scope';
import { useSession } from '../app/session';
import { ActionButton } from '../ui/action';
import { Answer } from '../ui/answer';
import { Heading, Panel } from '../ui/controls';
import { Facts } from '../ui/table';
import { Ago } from '../ui/time';

export const OrphansScreen = () => {
  const scope = useScope();
  const { role } = useSession();
  const query = useQuery({ queryKey: ['orphans', scope], queryFn: ({ signal }) => landfall.get('/api/v2/uploads/orphans', { query: { scope }, signal }) });
  const scan = async () => {
    const report = await landfall.get('/api/v2/uploads/orphans', { query: { scope, refresh: true } });
    queries.setQueryData(['orphans', scope], report);
  };
  return (
    <>
      <Heading
        title="Orphans"
        note="Bytes in the storage that belong to no file, and registrations whose bytes never came."
        actions={
          role === 'operator' && (
            <ActionButton icon="retry" run={scan} done="The storage was scanned.">
              Scan the storage now
            </ActionButton>
          )
        }
      />
      <Answer query={query} what="Looking for orphans">
        {({ lastScanTime, orphanBlobs, abandonedUploads }) => (
          <div className="grid gap-4 xl:grid-cols-2">
            <Panel title="Bytes without a file" className="self-start">
              <div className="grid gap-3 px-4 py-3">
                <Facts
                  facts={[
                    ['Blobs', number(orphanBlobs.count)],
                    ['Size', bytes(orphanBlobs.totalSize)],
                    ['Last scan', lastScanTime ? <Ago at={lastScanTime} /> : 'never'],
                  ]}
                />
                {orphanBlobs.samples.length > 0 && (
                  <details>
                    <summary className="w-fit cursor-pointer py-0.5 text-brand">Some of them</summary>
                    <ul className="mt-1 grid gap-0.5 font-mono text-xs break-all">
                      {orphanBlobs.samples.map(sample => (
                        <li key={sample}>{sample}</li>
                      ))}
                    </ul>
                  </details>
                )}
                <p className="text-soft">
                  {orphanBlobs.count === 0 ? 'There is nothing to clean.' : 'The job orphan-cleanup removes them when they are old enough.'}{' '}
                  {role === 'operator' && (
                    <Link to="/jobs" className="text-brand underline">
                      Maintenance jobs
                    </Link>
                  )}
                </p>
              </div>
            </Panel>
            <Panel title="Uploads that never came" className="self-start">
              <div className="grid gap-3 px-4 py-3">
                <Facts
                  facts={[
                    ['Files', number(abandonedUploads.count)],
                    ['Oldest', abandonedUploads.count > 0 ? span(abandonedUploads.oldestAge) : 'none'],
                  ]}
                />
                <p className="text-soft">
                  {abandonedUploads.count === 0 ? (
                    'Every file that was registered has its bytes, or is still expected.'
                  ) : (
                    <>
                      They are deleted when their time is over, unless their bytes come.{' '}
                      <Link to="/files" search={{ status: 'registered' }} className="text-brand underline">
                        Show them
                      </Link>
                    </>
                  )}
                </p>
              </div>
            </Panel>
          </div>
        )}
      </Answer>
    </>
  );
};
