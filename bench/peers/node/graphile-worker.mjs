// graphile-worker on PostgreSQL. With `task.localQueue` the process fetches that many jobs at once and completes jobs
// together; without it, each slot fetches and completes its own.

import { Logger, makeWorkerUtils, run as startWorkers } from 'graphile-worker';
import { countDone, createDone, number, recordDone } from './done.mjs';
import { STAGES, groups, run, task, until } from './harness.mjs';

// Only what went wrong: a line for each job would be measured too.
const logger = new Logger(() => (level, message) => {
  if (level === 'error') console.error(message);
});
const shared = { connectionString: task.url, maxPoolSize: task.slots + 2, logger };
let utils;

await run({
  async open() {
    utils = await makeWorkerUtils(shared);
    await utils.migrate();
    await createDone();
  },

  async queue(files) {
    for (const group of groups(files, 1000)) {
      await utils.addJobs(group.map((file) => ({ identifier: STAGES[0], payload: { file } })));
    }
  },

  async work(handle) {
    const taskList = {};
    for (const [stage, name] of STAGES.entries()) {
      taskList[name] = async ({ file }, helpers) => {
        await handle(stage, [file]);
        if (stage + 1 < STAGES.length) await helpers.addJob(STAGES[stage + 1], { file });
        else await recordDone([file]);
      };
    }
    const worker = task.localQueue ? { localQueue: { size: task.localQueue }, completeJobBatchDelay: 0 } : {};
    await startWorkers({ ...shared, concurrency: task.slots, taskList, noHandleSignals: true, preset: { worker } });
  },

  async settled(count) {
    await until(async () => (await countDone()) === count);
    // A completed job is deleted.
    await until(async () => (await number('SELECT count(*) FROM graphile_worker._private_jobs')) === 0);
  },
});
