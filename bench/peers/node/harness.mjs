// What the programs of all peers have in common: the task, the phases, and the count of the stages.
//
// The runner gives the task in PEER_TASK, as JSON. The program prints one JSON line at the end of each phase and waits for
// a line on its standard input: meanwhile the runner reads the CPU time of the database. Both the runner's and the
// program's figures therefore belong to the same phase.

import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';

export const STAGES = ['extract', 'chunk', 'embed'];
export const task = JSON.parse(process.env.PEER_TASK);

const WARM_UP = 5;
// Between two flows of the latency measurement, so that the workers are idle.
const PAUSE_MS = 5;

const replies = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
let phase = null;

function print(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function cpuMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

async function endPhase(name, more = {}) {
  const used = phase && { ms: performance.now() - phase.began, client_cpu_ms: cpuMs() - phase.cpu };
  print({ phase: name, ...used, ...more });
  await replies.next();
  phase = { began: performance.now(), cpu: cpuMs() };
}

/** Counts the stages that were run, and knows which files have passed the last one. */
class Tally {
  counts = STAGES.map(() => 0);
  // How often a stage of a file did not run right after the one before it.
  outOfOrder = 0;
  #stagesRun = new Map();
  #waiting = new Map();
  #lastStage = null;

  reached(stage, files) {
    this.counts[stage] += files.length;
    for (const file of files) {
      if ((this.#stagesRun.get(file) ?? 0) !== stage) this.outOfOrder += 1;
      this.#stagesRun.set(file, stage + 1);
    }
    if (stage < STAGES.length - 1) return;
    for (const file of files) this.#waiting.get(file)?.();
    this.#lastStage?.();
  }

  /** Resolves when the last stage has run this often. */
  all(count) {
    return new Promise((resolve) => {
      this.#lastStage = () => this.counts.at(-1) >= count && resolve();
      this.#lastStage();
    });
  }

  /** Resolves when this file has passed its last stage. */
  passed(file) {
    return new Promise((resolve) => this.#waiting.set(file, resolve));
  }
}

const modes = {
  async flows(peer) {
    const tally = new Tally();
    await endPhase('opened');
    await peer.queue(Array.from({ length: task.files }, (_, file) => file));
    await endPhase('queued');
    await peer.work(async (stage, files) => tally.reached(stage, files));
    await tally.all(task.files);
    await peer.settled(task.files);
    await endPhase('worked', { stages: tally.counts, out_of_order: tally.outOfOrder });
  },

  async latency(peer) {
    const tally = new Tally();
    await peer.work(async (stage, files) => tally.reached(stage, files));
    const samples = [];
    await endPhase('opened');
    for (let file = 0; file < WARM_UP + task.files; file += 1) {
      await pause(PAUSE_MS);
      const passed = tally.passed(file);
      const began = performance.now();
      await peer.queue([file]);
      await passed;
      if (file >= WARM_UP) samples.push(performance.now() - began);
    }
    await endPhase('worked', { samples });
  },

  /** Takes a job and never finishes it, until the runner kills this process. */
  async hold(peer) {
    await peer.work(() => {
      print({ phase: 'held' });
      return new Promise(() => {});
    });
    await peer.queue([0]);
    await new Promise(() => setInterval(() => {}, 60_000));
  },

  /** Waits for the job that the killed process held. */
  async take(peer) {
    const taken = new Promise((resolve) => peer.work(async () => resolve()));
    await endPhase('opened');
    await taken;
    print({ phase: 'taken' });
  },
};

/**
 * Runs the task with a peer, which is an object with these methods:
 *   open()                        connects, and creates what the peer needs in its database
 *   queue(files)                  queues the first stage of these files, which are numbers
 *   work(handle)                  starts the workers; they call `handle(stage, files)` for each job or group of jobs
 *   settled(count)                resolves when the database shows that this many files have passed the last stage
 */
export async function run(peer) {
  await peer.open();
  await modes[task.mode](peer);
  // Everything is measured, so there is nothing to shut down in order.
  process.exit(0);
}

/** Asks the database until the answer is yes. The runner limits how long a measurement may take. */
export async function until(question) {
  while (!(await question())) await pause(PAUSE_MS);
}

/** The files in groups of at most this many. */
export function* groups(files, size) {
  for (let first = 0; first < files.length; first += size) yield files.slice(first, first + size);
}

process.on('unhandledRejection', (error) => {
  console.error(error);
  process.exit(1);
});
