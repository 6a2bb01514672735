import { describe, expect, it } from 'vitest';
import type { Schema } from '../../lib/api/client';
import { nextTime, steps } from './timeline';

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
const failure = (attempt: number, from = 0, to = 1): Schema['AttemptView'] => ({
  attempt, consumer: 'w', leased_at: at(from), ended_at: at(to), cause: 'nack', error: 'boom', delay_ms: 1_000, delay_rule: 'backoff',
});
const message = (more: Partial<Schema['MessageView']>): Schema['MessageView'] => ({
  id: '', queue: 'q', state: 'delayed', body_bytes: 0, content_type: '', headers: {}, type: '', source: '', priority: 5, fairness_key: '',
  created_at: at(0), visible_at: at(5), attempts: 2, deliveries: 2, redrives: 0, failures: [], ...more,
});
const kinds = (more: Partial<Schema['MessageView']>) => steps(message(more)).map((step) => step.kind);

describe('steps', () => {
  it('are the attempts in their order', () => {
    expect(steps(message({ failures: [failure(1, 1, 3), failure(2)] }))).toMatchObject([
      { kind: 'enqueued' }, { kind: 'attempt', attempt: { attempt: 1 }, took: 2_000 }, { kind: 'attempt', took: 1_000 },
    ]);
  });

  it('are never of negative length', () => {
    expect(steps(message({ failures: [failure(1, 5, 1)] }))[1]).toMatchObject({ took: 0 });
  });

  it('say where attempts are missing, and where it came back', () => {
    expect(kinds({ failures: [failure(4), failure(5)] })).toEqual(['enqueued', 'forgotten', 'attempt', 'attempt']);
    expect(kinds({ redrives: 1, failures: [failure(1), failure(2), failure(1)] })).toEqual(['enqueued', 'attempt', 'attempt', 'redriven', 'attempt']);
    expect(kinds({ redrives: 1, attempts: 0, state: 'ready', failures: [failure(1), failure(2)] })).toEqual(['enqueued', 'attempt', 'attempt', 'redriven']);
  });
});

describe('attempts that are counted anew', () => {
  const twice = [failure(1), failure(2), failure(1)];

  it('were redriven only where there was a redrive', () => {
    expect(kinds({ failures: twice, redrives: 1, origin_queue: 'other' })).toContain('redriven');
    expect(kinds({ failures: twice, redrives: 0, origin_queue: 'other' })).toEqual(['enqueued', 'attempt', 'attempt', 'moved', 'attempt']);
    expect(kinds({ failures: twice, redrives: 0 })).toEqual(['enqueued', 'attempt', 'attempt', 'anew', 'attempt']);
  });

  it('are said of a message that has not been tried since', () => {
    const waiting = { state: 'ready', attempts: 0, failures: [failure(1), failure(2)] } as const;
    expect(kinds({ ...waiting, failures: [...waiting.failures], origin_queue: 'other' })).toEqual(['enqueued', 'attempt', 'attempt', 'moved']);
    expect(kinds({ failures: [failure(1), failure(2)], attempts: 2 })).toEqual(['enqueued', 'attempt', 'attempt']);
  });
});

describe('nextTime', () => {
  it('is the first that is still to come', () => {
    const why = { state: 'delayed' as const, obstacles: [{ kind: 'queue_paused', detail: '', until: at(3) }], earliest: at(5) };
    expect(nextTime(message({}), why, Date.parse(at(1)))).toBe(Date.parse(at(3)));
    expect(nextTime(message({}), why, Date.parse(at(4)))).toBe(Date.parse(at(5)));
    expect(nextTime(message({}), why, Date.parse(at(9)))).toBe(null);
  });
});
