// The same as commands for a shell. A key never stands in them: they take it from where it is kept, in `$REDRIVE_TOKEN`.

import type { Schema } from '../../lib/api/client';

type Message = Schema['MessageView'];

/** Where the server is, and whether it wants a key. */
export interface Place {
  /** With a slash at the end, such as `http://127.0.0.1:7400/`. */
  url: string;
  keyed: boolean;
}

export type CommandName = 'show' | 'why' | 'retry' | 'discard' | 'enqueue';

export interface Command {
  name: CommandName;
  curl: string;
  /** Nothing where the program has no such command. */
  cli: string | null;
}

/** The longest body that goes into a command, in characters: a shell takes 128 KiB in one word, and people take less. */
const BODY_CHARACTERS_MAX = 16_384;

/** A word of a shell command: what is in it means nothing to the shell. */
export function word(text: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

function curl(place: Place, method: string, path: string, body?: object): string {
  const said = ['curl', '-sS'];
  if (method !== 'GET') said.push('-X', method);
  // In double quotes, the only ones here: the shell puts the key in, and nothing else is in them.
  if (place.keyed) said.push('-H', '"Authorization: Bearer $REDRIVE_TOKEN"');
  if (body !== undefined) said.push('-H', word('Content-Type: application/json'), '--data-binary', word(JSON.stringify(body)));
  return [...said, word(place.url + path)].join(' ');
}

function cli(place: Place, ...words: readonly string[]): string {
  return ['redrive', ...words, '--url', place.url].map(word).join(' ');
}

function retry(message: Message, place: Place): Command | null {
  const { queue, id } = message;
  const path = `v1/queues/${encodeURIComponent(queue)}`;
  if (message.state === 'delayed') {
    return { name: 'retry', curl: curl(place, 'POST', `${path}/messages/${id}/reschedule`, { delay_ms: 0 }), cli: null };
  }
  if (message.state === 'leased') return { name: 'retry', curl: curl(place, 'POST', `${path}/leases/${id}/release`, {}), cli: null };
  if (message.state !== 'dead') return null;
  return {
    name: 'retry',
    curl: curl(place, 'POST', `${path}/dead/redrive`, { filter: { ids: [id] } }),
    cli: cli(place, 'dead', 'redrive', queue, '--id', id),
  };
}

/** The message as it was enqueued, without its id and its dedup key: with them it would be answered as a duplicate. */
function again(message: Message): object {
  const { type, source, fairness_key, headers, priority, content_type, body, body_base64, lease_timeout_ms, max_attempts } = message;
  return {
    ...(typeof body_base64 === 'string' ? { body_base64 } : { body: body ?? '' }),
    content_type,
    ...(Object.keys(headers).length > 0 ? { headers } : {}),
    ...(type === '' ? {} : { type }),
    ...(source === '' ? {} : { source }),
    ...(fairness_key === '' ? {} : { fairness_key }),
    priority,
    ...(typeof lease_timeout_ms === 'number' ? { lease_timeout_ms } : {}),
    ...(typeof max_attempts === 'number' ? { max_attempts } : {}),
  };
}

function enqueue(message: Message, place: Place): Command | null {
  const line = again(message);
  if (JSON.stringify(line).length > BODY_CHARACTERS_MAX) return null;
  return {
    name: 'enqueue',
    curl: curl(place, 'POST', `v1/queues/${encodeURIComponent(message.queue)}/messages`, line),
    cli: `printf '%s\\n' ${word(JSON.stringify(line))} | ${cli(place, 'enqueue', message.queue, '--ndjson')}`,
  };
}

/** What can be done with a message from a shell. */
export function commands(message: Message, place: Place): Command[] {
  const { queue, id } = message;
  const path = `v1/queues/${encodeURIComponent(queue)}/messages/${id}`;
  const force = message.state === 'leased';
  const all: (Command | null)[] = [
    { name: 'show', curl: curl(place, 'GET', path), cli: cli(place, 'message', 'show', queue, id) },
    { name: 'why', curl: curl(place, 'GET', `${path}/why`), cli: cli(place, 'message', 'why', queue, id) },
    retry(message, place),
    {
      name: 'discard',
      curl: curl(place, 'DELETE', force ? `${path}?force=true` : path),
      cli: cli(place, 'message', 'discard', queue, id, ...(force ? ['--force'] : [])),
    },
    enqueue(message, place),
  ];
  return all.filter((command) => command !== null);
}
