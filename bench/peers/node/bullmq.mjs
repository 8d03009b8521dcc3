// BullMQ on Redis. A file is a tree of three jobs, of which a parent runs after its child; all files are children of one
// job, which therefore runs when the whole batch is done.

import { FlowProducer, Worker } from 'bullmq';
import { STAGES, run, task } from './harness.mjs';

const connection = { host: '127.0.0.1', port: task.port, maxRetriesPerRequest: null };
const batchDone = Promise.withResolvers();
let flows;

function tree(file) {
  return STAGES.reduce((child, name) => {
    const job = { name, queueName: name, data: { file } };
    return child ? { ...job, children: [child] } : job;
  }, null);
}

await run({
  async open() {
    flows = new FlowProducer({ connection });
    await flows.waitUntilReady?.();
  },

  async queue(files) {
    const children = files.map(tree);
    // In the other modes there is one file at a time and no batch.
    if (task.mode === 'flows') await flows.add({ name: 'batch', queueName: 'batch', children });
    else await flows.addBulk(children);
  },

  async work(handle) {
    const workers = STAGES.map(
      (name, stage) =>
        new Worker(name, (job) => handle(stage, [job.data.file]), { connection, concurrency: task.workers[stage] }),
    );
    workers.push(new Worker('batch', async () => batchDone.resolve(), { connection }));
    for (const worker of workers) worker.on('error', (error) => console.error(error));
    await Promise.all(workers.map((worker) => worker.waitUntilReady()));
  },

  settled: () => batchDone.promise,
});
