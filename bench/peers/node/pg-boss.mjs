// pg-boss on PostgreSQL, woken by NOTIFY. `task.batch` is how many jobs a handler gets in one call: with more than two, the
// jobs of the next stage are also inserted together, otherwise each is sent by itself.

import { PgBoss } from 'pg-boss';
import { countDone, createDone, number, recordDone } from './done.mjs';
import { STAGES, groups, run, task, until } from './harness.mjs';

const boss = new PgBoss({ connectionString: task.url, max: 20, useListenNotify: true });
boss.on('error', (error) => console.error(error));
const together = task.batch > 2;

async function sendNext(stage, files) {
  const next = STAGES[stage + 1];
  if (!next) {
    if (together) await recordDone(files);
    else await Promise.all(files.map((file) => recordDone([file])));
  } else if (together) {
    await boss.insert(next, files.map((file) => ({ data: { file } })));
  } else {
    await Promise.all(files.map((file) => boss.send(next, { file })));
  }
}

await run({
  async open() {
    await boss.start();
    await createDone();
    for (const stage of STAGES) await boss.createQueue(stage, { notify: true });
  },

  async queue(files) {
    for (const group of groups(files, 1000)) {
      await boss.insert(STAGES[0], group.map((file) => ({ data: { file } })));
    }
  },

  async work(handle) {
    for (const [stage, name] of STAGES.entries()) {
      const options = { batchSize: task.batch, burstWhenBatchFull: true, localConcurrency: task.workers[stage] };
      await boss.work(name, options, async (jobs) => {
        const files = jobs.map((job) => job.data.file);
        await handle(stage, files);
        await sendNext(stage, files);
      });
    }
  },

  async settled(count) {
    await until(async () => (await countDone()) === count);
    const completed = `SELECT count(*) FROM pgboss.job WHERE name = '${STAGES.at(-1)}' AND state = 'completed'`;
    await until(async () => (await number(completed)) === count);
  },
});
