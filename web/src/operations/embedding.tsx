/** Re-embedding: files that have vectors of another model get those of the model that is configured now. */
import { useQuery } from '@tanstack/react-query';
import { landfall } from '../api/client';
import type { Reindex } from '../api/reports';
import { count, number } from '../app/format';
import { ActionButton, ConfirmButton } from '../ui/action';
import { Answer } from '../ui/answer';
import { Badge, Code, Gauge, Heading, Panel, Spinner } from '../ui/controls';
import { Only } from '../ui/only';
import { Facts } from '../ui/table';
import { Ago } from '../ui/time';

const FAST_MS = 2_000;

export const EmbeddingScreen = () => (
  <Only role="operator" title="Re-embedding">
    <Embedding />
  </Only>
);

const Embedding = () => {
  const query = useQuery({
    queryKey: ['reindex'],
    queryFn: ({ signal }) => landfall.get('/api/v2/admin/reindex', { signal }),
    refetchInterval: ({ state }) => (state.data?.isRunning ? FAST_MS : false),
  });
  return (
    <>
      <Heading title="Re-embedding" note="After a change of the embedding model, search finds earlier files by their words only, until they are embedded again." />
      <Answer query={query}>{reindex => <State reindex={reindex} />}</Answer>
    </>
  );
};

const State = ({ reindex }: { reindex: Reindex }) => {
  const { isRunning, model, total, done, failed, remaining, startedAt, startedBy, endedAt, message } = reindex;
  return (
    <Panel
      title={
        <span className="flex flex-wrap items-center gap-2">
          State
          {isRunning ? (
            <Badge tone="busy">
              <Spinner /> Running
            </Badge>
          ) : remaining > 0 ? (
            <Badge tone="warn">Needed</Badge>
          ) : (
            <Badge tone="good">Up to date</Badge>
          )}
        </span>
      }
      actions={
        isRunning ? (
          <ActionButton icon="cancel" run={() => landfall.delete('/api/v2/admin/reindex')} done="It stops after the present file. What is done stays done." refresh={['reindex']}>
            Stop
          </ActionButton>
        ) : (
          <ConfirmButton
            look={remaining > 0 ? 'main' : 'plain'}
            icon="embedding"
            disabled={remaining === 0}
            title={`Embed ${count(remaining, 'file')} again?`}
            question={
              <>
                Each file gets new vectors of the model <Code>{model}</Code>. That may take long, and costs money where the model is a paid service. Uploads go on meanwhile, and you can stop it at any time.
              </>
            }
            action="Start"
            danger={false}
            run={() => landfall.post('/api/v2/admin/reindex')}
            done="It has begun."
            refresh={['reindex']}
          >
            Start
          </ConfirmButton>
        )
      }
    >
      <div className="grid gap-3 px-4 py-3">
        {isRunning && (
          <div className="grid gap-1">
            <Gauge value={done + failed} max={total} label="Files embedded again" />
            <p className="tabular-nums">
              {number(done)} of {number(total)} files{failed > 0 && `, ${number(failed)} failed`}
            </p>
          </div>
        )}
        <p>{remaining === 0 ? 'Every file has vectors of the present model.' : `${count(remaining, 'file')} ${remaining === 1 ? 'has' : 'have'} vectors of another model.`}</p>
        <Facts
          facts={[
            ['Model', <Code key="model">{model}</Code>],
            [
              isRunning ? 'Started' : 'Last started',
              startedAt && (
                <span key="started">
                  <Ago at={startedAt} /> {startedBy && `by ${startedBy}`}
                </span>
              ),
            ],
            ['Ended', !isRunning && endedAt && <Ago at={endedAt} />],
            ['Result', !isRunning && startedAt && `${count(done, 'file')} done${failed > 0 ? `, ${number(failed)} failed` : ''}`],
            ['Message', message],
          ]}
        />
      </div>
    </Panel>
  );
};
