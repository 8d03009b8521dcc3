/** Downloads many files as one archive, with progress and Stop. */
import { useEffect, useRef, useState } from 'react';
import { sessionFetch } from '../app/session';
import { bytes } from '../app/format';
import { Button, IconButton, Notice } from '../ui/controls';

/** Above this the browser itself should save it, outside of the page. */
const MAX_IN_PAGE = 1 << 30;

type State = { kind: 'running'; received: number } | { kind: 'done'; received: number } | { kind: 'failed'; message: string };

export const ArchiveDownload = ({ query, onClose }: { query: Record<string, unknown>; onClose: () => void }) => {
  const [state, setState] = useState<State>({ kind: 'running', received: 0 });
  const stop = useRef(new AbortController());
  const url = `/api/v2/uploads/files/archive?${new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]))}`;
  useEffect(() => {
    const controller = (stop.current = new AbortController());
    receive(url, controller.signal, received => setState({ kind: 'running', received }))
      .then(received => setState({ kind: 'done', received }))
      .catch((error: unknown) => {
        if (!controller.signal.aborted) setState({ kind: 'failed', message: error instanceof Error ? error.message : String(error) });
      });
    return () => controller.abort();
  }, [url]);
  const close = () => {
    stop.current.abort();
    onClose();
  };
  return (
    <Notice
      tone={state.kind === 'failed' ? 'bad' : state.kind === 'done' ? 'good' : 'busy'}
      role={state.kind === 'failed' ? 'alert' : 'status'}
      actions={
        state.kind === 'running' ? (
          <Button icon="close" onClick={close}>
            Stop
          </Button>
        ) : (
          <IconButton icon="close" label="Dismiss" onClick={close} />
        )
      }
    >
      {state.kind === 'failed' ? state.message : `${state.kind === 'done' ? 'Downloaded' : 'Downloading'} the archive: ${bytes(state.received)}`}
    </Notice>
  );
};

const receive = async (url: string, signal: AbortSignal, onProgress: (received: number) => void): Promise<number> => {
  const response = await sessionFetch(url, { signal });
  if (!response.ok || !response.body) {
    const refusal = (await response.json().catch(() => null)) as { error?: { message?: string } } | null;
    throw new Error(refusal?.error?.message ?? `The server returned status ${response.status}.`);
  }
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let received = 0;
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value as Uint8Array<ArrayBuffer>);
    received += value.length;
    if (received > MAX_IN_PAGE) {
      await reader.cancel();
      save(url, 'files.zip');
      throw new Error('The archive is large, so the browser saves it by itself. See its downloads.');
    }
    onProgress(received);
  }
  const object = URL.createObjectURL(new Blob(parts, { type: 'application/zip' }));
  save(object, 'files.zip');
  // The browser needs the address until it has begun to save.
  setTimeout(() => URL.revokeObjectURL(object), 60_000);
  return received;
};

const save = (href: string, name: string) => {
  const link = document.createElement('a');
  link.href = href;
  link.download = name;
  link.click();
};
