// @vitest-environment node
import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import type { Schema } from '../../lib/api/client';
import { commands, word } from './commands';

const HOSTILE = [
  '', ' ', 'plain', "it's", `'"$(touch x)\`id\`;&|<>(){}[]*?!#~\\`, '-rf', '$REDRIVE_TOKEN', 'two\nlines', '\ttab', "'''", "\\'", 'é漢🙂', '\u202e', '%s%n', '=',
];

/** What a shell takes the words of a command for. */
function words(command: string): string[] {
  const { stdout } = spawnSync('sh', ['-c', `set -f; for word in ${command}; do printf '%s\\0' "$word"; done`], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH ?? '', REDRIVE_TOKEN: 'the key' },
  });
  return stdout.split('\0').slice(0, -1);
}

const message = (more: Partial<Schema['MessageView']> = {}): Schema['MessageView'] => ({
  id: '0198c1de-0000-7000-8000-000000000001', queue: 'orders', state: 'ready', body: 'x', body_bytes: 1, content_type: 'text/plain', headers: {},
  type: '', source: '', priority: 5, fairness_key: '', created_at: '', visible_at: '', attempts: 0, deliveries: 0, redrives: 0, failures: [], ...more,
});
const place = { url: 'http://127.0.0.1:7400/', keyed: true };

describe('word', () => {
  it('is one word to a shell, and the same word, whatever is in it', () => {
    expect(words(HOSTILE.map(word).join(' '))).toEqual(HOSTILE);
  });
});

describe('commands', () => {
  it('are what a shell takes them for, whatever a message has in it', () => {
    for (const text of HOSTILE) {
      const all = commands(message({ body: text, type: text, headers: { 'x-a': text } }), place);
      const enqueue = all.find(({ name }) => name === 'enqueue');
      const data = words(enqueue?.curl ?? '').find((one) => one.startsWith('{'));
      expect(JSON.parse(data ?? '')).toMatchObject({ body: text, headers: { 'x-a': text } });
      const line = words((enqueue?.cli ?? '').split(" | 'redrive' ")[0]?.split(' | redrive ')[0] ?? '')[2];
      expect(line).toBe(data);
    }
  });

  it('show a key only where one is wanted, and never which', () => {
    const [show] = commands(message(), place);
    expect(show?.curl).toContain('"Authorization: Bearer $REDRIVE_TOKEN"');
    expect(words(show?.curl ?? '')).toContain('Authorization: Bearer the key');
    for (const { curl, cli } of commands(message(), { ...place, keyed: false })) expect(`${curl}${cli}`).not.toContain('TOKEN');
  });

  it('retry in the way that the state allows', () => {
    const retry = (state: 'ready' | 'delayed' | 'leased' | 'dead' | 'done') => commands(message({ state }), place).find(({ name }) => name === 'retry');
    expect(retry('ready')).toBeUndefined();
    expect(retry('done')).toBeUndefined();
    expect(retry('delayed')?.curl).toMatch(/reschedule$/);
    expect(retry('leased')?.curl).toMatch(/leases\/[0-9a-f-]+\/release$/);
    expect(retry('dead')?.cli).toMatch(/^redrive dead redrive orders --id [0-9a-f-]+ --url /);
  });

  it('take a leased message only by force', () => {
    const discard = (state: 'leased' | 'dead') => commands(message({ state }), place).find(({ name }) => name === 'discard');
    expect(discard('leased')?.curl).toMatch(/force=true'$/);
    expect(discard('leased')?.cli).toContain('--force');
    expect(discard('dead')?.cli).not.toContain('--force');
  });

  it('leave out what is too long for a shell', () => {
    expect(commands(message({ body: 'x'.repeat(1 << 20) }), place).map(({ name }) => name)).not.toContain('enqueue');
  });
});
