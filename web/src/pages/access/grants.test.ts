import { expect, test } from 'vitest';
import { type KeyForm, grantText, requestOf } from './grants';

const form = (more: Partial<KeyForm> = {}): KeyForm => ({
  name: ' ops ',
  grants: [
    { scope: 'manage', queues: ' orders.* ' },
    { scope: 'read', queues: '' },
  ],
  expires_at: '',
  queues_max: '',
  keys_max: '',
  consumers_max: '',
  ...more,
});

test('what is left empty is not sent', () => {
  expect(requestOf(form())).toEqual({ body: { name: 'ops', grants: [{ scope: 'manage', queues: 'orders.*' }] }, wrong: [] });
});

test('what is said is sent, a quota of nothing included', () => {
  const { body, wrong } = requestOf(form({ expires_at: '2026-11-17T10:00:00.000Z', queues_max: '0', consumers_max: '8' }));
  expect(body).toMatchObject({ expires_at: '2026-11-17T10:00:00.000Z', queues_max: 0, consumers_max: 8 });
  expect('keys_max' in body).toBe(false);
  expect(wrong).toEqual([]);
});

test('a quota that is no number is wrong', () => {
  expect(requestOf(form({ queues_max: '-1', keys_max: 'many' })).wrong).toEqual(['queues_max', 'keys_max']);
});

test('grants are read as they are typed on the command line', () => {
  expect(grantText([{ scope: 'read', queues: '*' }, { scope: 'manage', queues: 'mail' }])).toBe('read:*, manage:mail');
});
