/** One file: its state and what can be done, its way, its text beside the original, its chunks, and the answer of the API. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { Tabs } from 'radix-ui';
import { useState } from 'react';
import { landfall } from '../api/client';
import { hasEnded, STAGES, type FileView, type Stage } from '../api/types';
import { Failure } from '../app/failure';
import { bytes, number } from '../app/format';
import type { FileSearch } from '../app/router';
import { canCancel, canDownload, canRetry, cancelFile, deleteFile, downloadFile, retryFile } from '../files/actions';
import { Situation, StatusBadge } from '../files/status';
import { Button, Code, Heading, IconButton, Loading, Notice, Panel } from '../ui/controls';
import { Confirm } from '../ui/dialog';
import { Icon } from '../ui/icons';
import { Menu } from '../ui/menu';
import { Ago, Countdown } from '../ui/time';
import { toast } from '../ui/toasts';
import { Chunks } from './chunks';
import { Reading } from './reading';
import { Timeline } from './timeline';

const TABS: { id: NonNullable<FileSearch['tab']>; label: string }[] = [
  { id: 'timeline', label: 'Timeline' },
  { id: 'text', label: 'Text and original' },
  { id: 'chunks', label: 'Chunks' },
  { id: 'json', label: 'JSON' },
];

export const FileScreen = () => {
  const { fileId } = useParams({ from: '/files/$fileId' });
  const search = useSearch({ from: '/files/$fileId' });
  const navigate = useNavigate({ from: '/files/$fileId' });
  const { data: file, error, isPending, refetch } = useQuery({
    queryKey: ['file', fileId],
    queryFn: ({ signal }) => landfall.get('/api/v2/uploads/files/{fileId}', { params: { fileId }, signal }),
    refetchInterval: query => (query.state.data && hasEnded(query.state.data.status) ? false : 5_000),
  });
  if (isPending) return <Loading what="Loading the file" />;
  if (error)
    return (
      <>
        <Heading title="File" />
        <Failure error={error} retry={() => void refetch()} />
      </>
    );
  const tab = search.tab ?? (search.from !== undefined || search.page !== undefined ? 'text' : 'timeline');
  return (
    <>
      <Heading
        title={file.fileName}
        note={
          <span className="flex flex-wrap items-center gap-x-3 gap-y-1">
            <StatusBadge status={file.status} />
            <span>{bytes(file.size)}</span>
            <span>
              {file.userId} · {file.tenantId}
            </span>
            <span>
              uploaded <Ago at={file.confirmedAt ?? file.createdAt} />
            </span>
          </span>
        }
        actions={<Actions file={file} />}
      />
      <div className="mb-4 grid gap-2 empty:hidden">
        <Outcome file={file} />
      </div>
      <Tabs.Root value={tab} onValueChange={next => void navigate({ search: before => ({ ...before, tab: next as FileSearch['tab'] }), replace: true })}>
        <Tabs.List aria-label="Parts of the file" className="mb-3 flex gap-1 overflow-x-auto border-b border-line">
          {TABS.map(({ id, label }) => (
            <Tabs.Trigger key={id} value={id} className="-mb-px border-b-2 border-transparent px-3 py-2 whitespace-nowrap text-soft hover:text-ink data-[state=active]:border-brand data-[state=active]:font-medium data-[state=active]:text-ink">
              {label}
            </Tabs.Trigger>
          ))}
        </Tabs.List>
        <Tabs.Content value="timeline" className="grid items-start gap-4 outline-none lg:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
          <Timeline file={file} />
          <Details file={file} />
        </Tabs.Content>
        <Tabs.Content value="text" className="outline-none">
          <Reading file={file} from={search.from} to={search.to} page={search.page} first={search.first} last={search.last} />
        </Tabs.Content>
        <Tabs.Content value="chunks" className="outline-none">
          <Chunks file={file} />
        </Tabs.Content>
        <Tabs.Content value="json" className="outline-none">
          <RawJson file={file} />
        </Tabs.Content>
      </Tabs.Root>
    </>
  );
};

/** What happened and what to do, before everything else. */
const Outcome = ({ file }: { file: FileView }) => (
  <>
    {file.error && (
      <Notice tone={file.status === 'failed' ? 'bad' : 'warn'} role="alert">
        <p>{file.error.message}</p>
        <p className="mt-0.5 text-xs">
          <Code>{file.error.code}</Code>
          {file.error.stage && ` at ${file.error.stage}`}
          {file.error.at && (
            <>
              {' '}
              <Ago at={file.error.at} />
            </>
          )}
        </p>
      </Notice>
    )}
    {!file.error && !['ready', 'cancelled', 'deleted'].includes(file.status) && (
      <p>
        <Situation file={{ ...file, warningCount: 0 }} />
      </p>
    )}
    {(file.warnings ?? []).length > 0 && (
      <Notice tone="warn">
        <p className="font-medium">Something is missing in the text of this file:</p>
        <ul className="mt-1 list-disc pl-5">
          {file.warnings?.map((warning, index) => (
            <li key={index}>
              {warning.message}
              {warning.page !== null && ` (page ${warning.page})`} <Code>{warning.code}</Code>
            </li>
          ))}
        </ul>
      </Notice>
    )}
    {file.archiveBatchId && (
      <Notice tone="calm">
        This archive was unpacked: each file in it is a file of its own.{' '}
        <Link to="/files" search={{ batchId: file.archiveBatchId }} className="text-brand underline">
          Show its files
        </Link>{' '}
        ·{' '}
        <Link to="/batches/$batchId" params={{ batchId: file.archiveBatchId }} className="text-brand underline">
          Show their progress
        </Link>
      </Notice>
    )}
    {file.deletionAt && (
      <Notice tone="warn">
        {file.status === 'failed' ? 'It is deleted' : 'It expires'} <Countdown to={file.deletionAt} />
        {file.status === 'failed' && ', unless it is retried'}.
      </Notice>
    )}
  </>
);

const Actions = ({ file }: { file: FileView }) => {
  const navigate = useNavigate();
  const [deleting, setDeleting] = useState(false);
  const [busy, setBusy] = useState(false);
  const retry = async (stage?: Stage) => {
    setBusy(true);
    await retryFile(file, stage);
    setBusy(false);
  };
  return (
    <>
      {canRetry(file) && (
        <span className="inline-flex">
          <Button look="main" icon="retry" busy={busy} onClick={() => void retry()} className="rounded-r-none">
            Retry
          </Button>
          <Menu
            label="Retry from a stage"
            trigger={
              <Button look="main" aria-label="Retry from a stage" className="rounded-l-none border-l-brand-ink/40 px-1.5">
                <Icon name="down" />
              </Button>
            }
            items={STAGES.map(stage => ({ label: `From ${stage}`, onSelect: () => void retry(stage) }))}
          />
        </span>
      )}
      {canCancel(file) && (
        <Button icon="cancel" onClick={() => void cancelFile(file)}>
          Cancel
        </Button>
      )}
      {canDownload(file) && (
        <Button icon="download" onClick={() => downloadFile(file)}>
          Download
        </Button>
      )}
      {file.status !== 'deleted' && (
        <Button look="danger" icon="delete" onClick={() => setDeleting(true)}>
          Delete
        </Button>
      )}
      <Confirm
        open={deleting}
        onOpenChange={setDeleting}
        title={`Delete ${file.fileName}?`}
        action="Delete"
        onConfirm={async () => {
          await deleteFile(file);
          await navigate({ to: '/files' });
        }}
      >
        The file, its text and its search entries are deleted. This cannot be undone.
      </Confirm>
    </>
  );
};

const Details = ({ file }: { file: FileView }) => {
  const attempts = Object.entries(file.attempts).filter(([, made]) => made > 0);
  const rows: [string, React.ReactNode][] = [
    ['Id', <Code key="id">{file.fileId}</Code>],
    ['Type', file.contentType ?? 'unknown'],
    ['Priority', file.priority],
    ['Attempts', attempts.length > 0 ? attempts.map(([stage, made]) => `${stage} ${made}`).join(', ') : 'none'],
    ...(file.chunkCount !== null ? ([['Chunks', number(file.chunkCount)]] as [string, React.ReactNode][]) : []),
    ...(file.batchId
      ? ([
          [
            'Batch',
            <Link key="batch" to="/batches/$batchId" params={{ batchId: file.batchId }} className="text-brand underline">
              {file.batchId}
            </Link>,
          ],
        ] as [string, React.ReactNode][])
      : []),
    ...(file.retriedAt
      ? ([
          [
            'Retried',
            <span key="retried">
              <Ago at={file.retriedAt} /> by {file.retriedBy}
            </span>,
          ],
        ] as [string, React.ReactNode][])
      : []),
    ...(file.md5 ? ([['MD5', <Code key="md5">{file.md5}</Code>]] as [string, React.ReactNode][]) : []),
    ...(file.sha256 ? ([['SHA-256', <Code key="sha">{file.sha256}</Code>]] as [string, React.ReactNode][]) : []),
    ...Object.entries(file.attributes ?? {}).map(([name, value]): [string, React.ReactNode] => [name, String(value)]),
    ...(file.traceUrl
      ? ([
          [
            'Trace',
            <a key="trace" href={file.traceUrl} target="_blank" rel="noopener noreferrer" className="text-brand underline">
              Open the trace
            </a>,
          ],
        ] as [string, React.ReactNode][])
      : []),
  ];
  return (
    <Panel title="Details">
      <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1.5 p-4">
        {rows.map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-soft">{name}</dt>
            <dd className="min-w-0 break-words">{value}</dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
};

const RawJson = ({ file }: { file: FileView }) => {
  const json = JSON.stringify(file, null, 2);
  const copy = () => void navigator.clipboard.writeText(json).then(() => toast('Copied.'), () => toast('The browser did not allow to copy.', { tone: 'bad' }));
  return (
    <Panel title="Response of the API" actions={<IconButton icon="copy" label="Copy the JSON" onClick={copy} />}>
      <pre tabIndex={0} className="overflow-x-auto p-4 font-mono text-xs leading-relaxed">
        {json}
      </pre>
    </Panel>
  );
};
