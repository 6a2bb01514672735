// An endpoint for webhooks, on this machine: it remembers what it was sent, and answers what the test says.

import { type IncomingHttpHeaders, type Server as HttpServer, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Answer {
  status: number;
  headers?: Record<string, string>;
  body?: string | Buffer;
}

export interface Received {
  headers: IncomingHttpHeaders;
  body: string;
}

export class Receiver {
  readonly received: Received[] = [];
  /** What it answers from now on. */
  answer: Answer = { status: 200 };
  readonly #http: HttpServer;

  private constructor() {
    this.#http = createServer((request, response) => {
      const pieces: Buffer[] = [];
      request.on('data', (piece: Buffer) => pieces.push(piece));
      request.on('end', () => {
        this.received.push({ headers: request.headers, body: Buffer.concat(pieces).toString('utf8') });
        response.writeHead(this.answer.status, this.answer.headers);
        response.end(this.answer.body);
      });
    });
  }

  static async start(): Promise<Receiver> {
    const receiver = new Receiver();
    await new Promise<void>((resolve) => receiver.#http.listen(0, '127.0.0.1', resolve));
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}/hooks`;
  }

  async end(): Promise<void> {
    this.#http.closeAllConnections();
    await new Promise((resolve) => this.#http.close(resolve));
  }
}
