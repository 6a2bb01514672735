// The real binary, started for one test on a free port with a directory of its own and a clock that only the test moves.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

const BINARY = resolve(process.env.REDRIVE_BIN ?? '../target/debug/redrive');

export interface Wanted {
  /** Whether it wants keys; requests of the test then show the one that may do everything. */
  keyed?: boolean;
  flags?: string[];
  /** Whether time stands still until the test moves it. */
  clock?: boolean;
  /** The path below which it is found, such as `/ops/redrive`. */
  base?: string;
  /** The port, where it must be the one of a server before it. */
  port?: number;
}

/** What the API answers, which a test looks at piece by piece. */
export type Json = any;

export class Server {
  #child: ChildProcess | null = null;
  readonly #dir = mkdtempSync(join(tmpdir(), 'redrive-browser-'));
  readonly #wanted: Wanted;
  /** The address, such as `http://127.0.0.1:40123`. */
  origin = '';
  /** The key that may do everything, where keys are wanted. */
  readonly token: string | null;

  private constructor(wanted: Wanted) {
    this.#wanted = wanted;
    this.token = wanted.keyed ? spawnSync(BINARY, ['key', 'generate'], { encoding: 'utf8' }).stdout.trim() : null;
  }

  static async start(wanted: Wanted = {}): Promise<Server> {
    const server = new Server({ clock: true, ...wanted });
    await server.#launch(wanted.port ?? 0);
    return server;
  }

  /** The path below which it is found; nothing where that is the root. */
  get base(): string {
    return this.#wanted.base ?? '';
  }

  get port(): number {
    return Number(new URL(this.origin).port);
  }

  async #launch(port: number): Promise<void> {
    const flags = ['serve', '--listen', `127.0.0.1:${port}`, '--data', join(this.#dir, 'data'), '--log-level', 'warn'];
    if (this.#wanted.clock) flags.push('--test-clock');
    if (this.base !== '') flags.push('--base-path', this.base);
    const env = { ...process.env, ...(this.token ? { REDRIVE_BOOTSTRAP_KEY: this.token } : {}) };
    const child = spawn(BINARY, [...flags, ...(this.#wanted.flags ?? [])], { cwd: this.#dir, env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    child.stderr.pipe(createWriteStream(join(this.#dir, 'log'), { flags: 'a' }));
    this.origin = await new Promise<string>((resolve, reject) => {
      createInterface({ input: child.stdout }).on('line', (line) => {
        const found = /ready on (\S+)/.exec(line);
        // Where it is found below a path, it says that, too.
        if (found?.[1]) resolve(new URL(found[1]).origin);
      });
      child.once('error', reject);
      child.once('exit', (code) => reject(new Error(`the server ended with ${code} before it was ready`)));
    });
  }

  /** Kills it as the machine would. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === null) return;
    this.#child = null;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }

  /** Starts it again on what it left, at the same port. */
  async restart(): Promise<void> {
    await this.#launch(this.port);
  }

  async end(): Promise<void> {
    await this.kill();
    rmSync(this.#dir, { recursive: true, force: true });
  }

  /** Calls the API, and answers the body. What is refused fails the test. */
  async call(method: string, path: string, body?: unknown, token = this.token): Promise<Json> {
    const headers: Record<string, string> = { 'content-type': 'application/json' };
    if (token !== null) headers.authorization = `Bearer ${token}`;
    const init: RequestInit = { method, headers };
    if (body !== undefined) init.body = JSON.stringify(body);
    const response = await fetch(this.origin + this.base + path, init);
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  }

  get(path: string): Promise<Json> {
    return this.call('GET', path);
  }

  post(path: string, body: unknown = {}): Promise<Json> {
    return this.call('POST', path, body);
  }

  /** Moves the clock of the server ahead. */
  async advance(ms: number): Promise<void> {
    await this.post('/test/clock', ms);
  }

  /** Holds the sweepers, or lets them go. */
  async holdSweeper(held: boolean): Promise<void> {
    await this.post('/test/sweeper', held);
  }

  async create(queue: string, config: object = {}): Promise<void> {
    await this.post('/v1/queues', { name: queue, config });
  }

  async enqueue(queue: string, message: object = { body: 'hello' }): Promise<string> {
    return (await this.post(`/v1/queues/${queue}/messages`, message)).id;
  }

  /** Enqueues many, in batches. */
  async enqueueMany(queue: string, count: number, message: (at: number) => object): Promise<void> {
    for (let from = 0; from < count; from += 1_000) {
      const messages = Array.from({ length: Math.min(1_000, count - from) }, (_, at) => message(from + at));
      await this.post(`/v1/queues/${queue}/messages/batch`, { messages });
    }
  }

  async lease(queue: string, request: object = {}): Promise<Json[]> {
    return (await this.post(`/v1/queues/${queue}/lease`, request)).messages;
  }

  async ack(receipt: string): Promise<void> {
    await this.post('/v1/leases/ack', { receipt });
  }

  async nack(receipt: string, error: string, more: object = {}): Promise<Json> {
    return this.post('/v1/leases/nack', { receipt, error, ...more });
  }

  /** A message that is dead of this error. */
  async die(queue: string, error: string, message: object = { body: 'hello' }): Promise<string> {
    const id = await this.enqueue(queue, message);
    const [leased] = await this.lease(queue);
    await this.post('/v1/leases/bury', { receipt: leased.receipt, error });
    return id;
  }

  /** A key with these grants, such as `['read', '*']`. */
  async key(name: string, ...grants: [scope: string, queues: string][]): Promise<string> {
    const made = await this.post('/v1/keys', { name, grants: grants.map(([scope, queues]) => ({ scope, queues })) });
    return made.token;
  }
}
