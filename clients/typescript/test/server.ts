import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

export const PROGRAM = resolve(process.env['LANDFALL_PROGRAM'] ?? '../../target/debug/landfall')

/** A server of its own, in a folder of its own. */
export class TestServer {
  readonly folder = mkdtempSync(join(tmpdir(), 'landfall-client-'))
  readonly settings: Record<string, string>
  url = ''
  #child: ChildProcess | undefined
  #port = 0
  readonly #tokens = new Map<string, string>()

  private constructor(settings: Record<string, string>) {
    this.settings = { DATA_DIR: join(this.folder, 'data'), LOG_LEVEL: 'warn', ...settings }
  }

  static async start(settings: Record<string, string> = {}): Promise<TestServer> {
    const server = new TestServer(settings)
    await server.start()
    return server
  }

  /** Starts it, after `kill` on the same port. */
  async start(): Promise<void> {
    const child = spawn(PROGRAM, ['serve'], {
      env: { PATH: process.env['PATH'], ...this.settings, PORT: String(this.#port) },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    this.url = await new Promise<string>((found, fail) => {
      let said = ''
      const look = (text: Buffer) => {
        said += text.toString()
        const match = /listening on (http:\/\/[^\s]+)/.exec(said)
        if (match?.[1]) found(match[1])
      }
      child.stdout.on('data', look)
      child.stderr.on('data', look)
      child.on('error', fail)
      child.on('exit', () => fail(new Error(`The server ended: ${said}`)))
    })
    this.#port = Number(new URL(this.url).port)
  }

  /** Ends the process at once, without any farewell. */
  async kill(): Promise<void> {
    const child = this.#child
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
  }

  token(options: { user?: string; tenant?: string; role?: string; ttl?: string } = {}): string {
    const { user = 'me', tenant = 'local', role, ttl } = options
    const flags = ['--user', user, '--tenant', tenant, ...(role ? ['--role', role] : []), ...(ttl ? ['--ttl', ttl] : [])]
    const known = this.#tokens.get(flags.join(' '))
    if (known !== undefined && !ttl) return known
    const token = execFileSync(PROGRAM, ['token', ...flags], { env: { ...process.env, ...this.settings } }).toString().trim()
    this.#tokens.set(flags.join(' '), token)
    return token
  }

  async stop(): Promise<void> {
    await this.kill()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** A proxy that cuts connections when it is told to, or after a number of bytes from the client. */
export class Proxy {
  /** How many bytes came from clients. */
  received = 0
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** Those that carried a request. Node opens spare connections, too. */
  readonly #used = new Set<Socket>()
  #cutAfter = Infinity
  #isAway = false

  private constructor(target: string) {
    const { hostname, port } = new URL(target)
    this.#server = createServer((client) => {
      if (this.#isAway) return void client.resetAndDestroy()
      let passed = 0
      let isCut = false
      const upstream = connect(Number(port), hostname)
      for (const [from, to] of [[client, upstream], [upstream, client]] as const) {
        this.#sockets.add(from)
        from.on('error', () => {})
        from.on('close', () => {
          this.#sockets.delete(from)
          this.#used.delete(from)
          if (!isCut) to.destroy()
        })
        from.on('data', (bytes) => {
          if (from === client) {
            passed += bytes.length
            this.received += bytes.length
            this.#used.add(client)
          }
          if (passed <= this.#cutAfter) {
            if (to.write(bytes)) return
            from.pause()
            return void to.once('drain', () => from.resume())
          }
          // The server gets what came so far, so that it has something to keep.
          isCut = true
          this.#cutAfter = Infinity
          upstream.end(bytes.subarray(0, bytes.length / 2))
          client.resetAndDestroy()
        })
      }
    })
  }

  static async to(target: string): Promise<Proxy> {
    const proxy = new Proxy(target)
    await new Promise<void>((done) => proxy.#server.listen(0, '127.0.0.1', done))
    return proxy
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get open(): number {
    return this.#used.size
  }

  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Cuts the next connection that sends more than so many bytes, once. */
  cutAfter(bytes: number): void {
    this.#cutAfter = bytes
  }

  /** Refuses all connections, as if there were no network. */
  goAway(): void {
    this.#isAway = true
    this.cutAll()
  }

  comeBack(): void {
    this.#isAway = false
  }

  async close(): Promise<void> {
    this.cutAll()
    await new Promise((done) => this.#server.close(done))
  }
}

/** Text of about so many bytes, different for each seed. */
export function text(bytes: number, seed = 1): Uint8Array<ArrayBuffer> {
  const words = ['harbour', 'lantern', 'gravel', 'meadow', 'copper', 'window', 'ledger', 'orchard', 'signal', 'timber']
  let state = seed
  let line = ''
  while (line.length < 4096) {
    state = (state * 1103515245 + 12345) % 2147483648
    line += `${words[state % words.length]} ${state % 97} `
  }
  return new TextEncoder().encode(line.repeat(Math.ceil(bytes / line.length)).slice(0, bytes))
}

/** Resolves when the condition is met, which is looked at again and again. */
export async function until(condition: () => boolean | Promise<boolean>, what = 'the condition', ms = 20_000): Promise<void> {
  const end = Date.now() + ms
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`${what} was not met in ${ms} ms`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
