/** Servers of the program under test, each with a folder and a port of its own. */
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { until } from './until.mjs';

const run = promisify(execFile);
const PROGRAM = process.env.LANDFALL_PROGRAM;
if (!PROGRAM) throw new Error('LANDFALL_PROGRAM names the program to test; web/check sets it');

/** What a developer has set for their own server must not change the tests. */
const inherited = Object.fromEntries(['PATH', 'HOME', 'LANG', 'TMPDIR'].filter(name => process.env[name]).map(name => [name, process.env[name]]));

export class Server {
  #child = null;
  #log = [];
  #tokens = new Map();

  constructor(folder, settings) {
    this.folder = folder;
    this.settings = { LOG_LEVEL: 'warn', OCR: 'off', ...settings };
  }

  static async start(settings = {}) {
    const server = new Server(await mkdtemp(join(tmpdir(), 'landfall-console-')), settings);
    await server.begin();
    return server;
  }

  get #environment() {
    return { ...inherited, DATA_DIR: this.folder, PORT: String(this.port ?? 0), ...this.settings };
  }

  /** Starts it; again on the same port when it was stopped. */
  async begin() {
    const child = (this.#child = spawn(PROGRAM, ['serve'], { cwd: this.folder, env: this.#environment, stdio: ['ignore', 'pipe', 'pipe'] }));
    createInterface({ input: child.stderr }).on('line', line => this.#log.push(line) > 200 && this.#log.shift());
    this.base = await new Promise((resolve, reject) => {
      createInterface({ input: child.stdout }).on('line', line => {
        const found = /listening on (http:\/\/\S+)/.exec(line);
        if (found) resolve(found[1]);
      });
      child.once('exit', code => reject(new Error(`the server ended with ${code}:\n${this.#log.join('\n')}`)));
    });
    this.port = Number(new URL(this.base).port);
    await until('the server is ready', async () => (await fetch(`${this.base}/readyz`)).ok);
  }

  /** A process that this one started ends; `signal` as a crash or as an operator would. */
  async end(signal = 'SIGKILL') {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise(resolve => child.once('exit', resolve));
    child.kill(signal);
    await ended;
  }

  async stop() {
    await this.end('SIGKILL');
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  async command(...words) {
    const { stdout } = await run(PROGRAM, words, { cwd: this.folder, env: this.#environment, maxBuffer: 1 << 24 });
    return stdout.trim();
  }

  /** What `landfall open` prints: only on a terminal, because who reads it is signed in. */
  async link(...words) {
    const quoted = [PROGRAM, 'open', '--server', this.base, ...words].map(word => `'${word}'`).join(' ');
    const { stdout } = await run('script', ['-qec', quoted, '/dev/null'], { cwd: this.folder, env: { ...this.#environment, TERM: 'dumb' } });
    const found = /http:\/\/\S+#open=[^\s\x1b]+/.exec(stdout);
    if (!found) throw new Error(`no link in ${JSON.stringify(stdout)}`);
    return found[0];
  }

  async token({ user = 'ada', tenant = 'acme', role = 'member' } = {}) {
    const key = `${user} ${tenant} ${role}`;
    if (!this.#tokens.has(key)) this.#tokens.set(key, this.command('token', '--user', user, '--tenant', tenant, '--role', role, '--ttl', '1h'));
    return this.#tokens.get(key);
  }

  /** The API as a program uses it: `await api('GET', '/uploads/files')`. */
  async api(person = {}) {
    const token = await this.token(person);
    return async (method, path, body, headers = {}) => {
      const response = await fetch(path.startsWith('http') ? path : `${this.base}/api/v2${path}`, {
        method,
        headers: { Authorization: `Bearer ${token}`, ...(body === undefined || Buffer.isBuffer(body) ? {} : { 'Content-Type': 'application/json' }), ...headers },
        ...(body === undefined ? {} : { body: Buffer.isBuffer(body) ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
      return text.startsWith('{') ? JSON.parse(text) : text;
    };
  }

  /** Uploads a file as a program does, and returns its id. */
  async upload(name, content, { person = {}, batchId } = {}) {
    const api = await this.api(person);
    const bytes = Buffer.from(content);
    const announced = { fileName: name, fileSize: bytes.length };
    if (batchId) {
      const { fileId, uploadUrl } = await api('POST', `/uploads/batches/${batchId}/upload-urls`, announced);
      await api('PUT', uploadUrl, bytes);
      await api('POST', `/uploads/batches/${batchId}/files/${fileId}/confirm`);
      return fileId;
    }
    const { fileId, uploadUrl } = await api('POST', '/uploads/files/init', announced);
    await api('PUT', uploadUrl, bytes);
    await api('POST', `/uploads/files/${fileId}/confirm`);
    return fileId;
  }

  async uploadAll(files, options = {}) {
    const ids = {};
    for (const [name, content] of Object.entries(files)) ids[name] = await this.upload(name, content, options);
    return ids;
  }

  /** Waits until a file has one of these states. */
  async reaches(fileId, states = ['ready'], person = {}) {
    const api = await this.api(person);
    let file;
    await until(`${fileId} is ${states}`, async () => {
      file = await api('GET', `/uploads/files/${fileId}`);
      if (!states.includes(file.status) && file.status === 'failed') throw new Error(`it failed: ${JSON.stringify(file.error)}`);
      return states.includes(file.status);
    });
    return file;
  }
}
