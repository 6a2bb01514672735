// What to type to see the first message go through, for a shell.

/** The queue of the first message. */
export const FIRST_QUEUE = 'hello';

/** Makes the queue, where the server does not do that by itself; puts a message into it, and takes it out again. */
export interface Steps {
  create: string;
  enqueue: string;
  work: string;
}

export interface Commands {
  cli: Steps;
  /** The same without the program. */
  curl: Steps;
}

/** A word for a shell, whatever is in it. */
export function quoted(word: string): string {
  return /^[A-Za-z0-9_.:/@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/**
 * The commands for the server at `origin`, whose API lives below `base`. What of the program speaks gRPC, which lives at the root, leaves
 * the path of an address out. A key is taken from the environment: a command line is seen by others.
 */
export function commands(origin: string, base: string, keyed: boolean): Commands {
  const url = quoted(`${origin}${base}`.replace(/\/$/, ''));
  const api = quoted(`${origin}${base}v1`);
  const key = keyed ? ' -H "authorization: Bearer $REDRIVE_TOKEN"' : '';
  const curl = (path: string, body: string) => `curl -s ${api}/${path}${key} -H 'content-type: application/json' -d ${body}`;
  const lease = curl(`queues/${FIRST_QUEUE}/lease`, "'{}'");
  return {
    cli: {
      create: `redrive queue create --url ${url} ${FIRST_QUEUE}`,
      enqueue: `redrive enqueue --url ${url} ${FIRST_QUEUE} 'Hello, world'`,
      work: `redrive work --url ${url} ${FIRST_QUEUE} -- cat`,
    },
    curl: {
      create: curl('queues', `'{"name": "${FIRST_QUEUE}"}'`),
      enqueue: curl(`queues/${FIRST_QUEUE}/messages`, `'{"body": "Hello, world"}'`),
      work: [
        `receipt=$(${lease} | sed 's/.*"receipt":"\\([^"]*\\)".*/\\1/')`,
        curl('leases/ack', '"{\\"receipt\\": \\"$receipt\\"}"'),
      ].join('\n'),
    },
  };
}
