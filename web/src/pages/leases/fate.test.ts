import { describe, expect, it } from 'vitest';
import type { Schema } from '../../lib/api/client';
import { fateOf } from './fate';

const message = (more: object) => ({ attempts: 1, visible_at: '2026-01-01T00:00:12.000Z', ...more }) as Schema['MessageView'];

describe('fateOf', () => {
  it.each([
    [{ state: 'ready' }, { to: 'ready', attempt: 2 }],
    [{ state: 'ready', attempts: 0 }, { to: 'ready', attempt: 1 }],
    [{ state: 'delayed' }, { to: 'delayed', attempt: 2, until: '2026-01-01T00:00:12.000Z' }],
    [{ state: 'dead', dead_reason: 'max_attempts' }, { to: 'dead', reason: 'max_attempts' }],
    [{ state: 'done' }, { to: 'done' }],
    [{ state: 'leased', lease: { lease_id: '7', consumer: 'w1' } }, { to: 'same' }],
    [{ state: 'leased', attempts: 2, lease: { lease_id: '8', consumer: 'w2' } }, { to: 'leased', attempt: 2, consumer: 'w2' }],
  ])('%j is %j', (said, fate) => {
    expect(fateOf('7', message(said))).toEqual(fate);
  });

  it('what is not there is gone', () => {
    expect(fateOf('7', undefined)).toEqual({ to: 'gone' });
  });
});
