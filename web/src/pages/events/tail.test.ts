import { describe, expect, it } from 'vitest';
import type { Told } from '../../lib/live.svelte';
import { LINES_MAX, type Line, TailOfEvents } from './tail';

const ANY = { types: [], queue: '' };

function event(type: string, queue = 'orders'): Told {
  return { id: '1', type, timestamp: 0, payload: { queue, count: 1, dlq_count: 0, triggered_by: 'consumer' } };
}

const words = (lines: readonly Line[]) => lines.map((line) => ('missed' in line ? `missed ${line.missed}` : `${line.event.type} ${line.event.payload.queue}`));

describe('TailOfEvents', () => {
  it('has the newest first, and a number of its own for each', () => {
    const tail = new TailOfEvents();
    tail.take([event('enqueue'), event('lease')], ANY);
    tail.flush();
    tail.take([event('ack')], ANY);
    expect(words(tail.flush())).toEqual(['ack orders', 'lease orders', 'enqueue orders']);
    expect(tail.lines.map((line) => line.number)).toEqual([3, 2, 1]);
  });

  it('keeps so many and no more, however they come', () => {
    const tail = new TailOfEvents();
    for (let at = 0; at < 5; at++) tail.take(Array.from({ length: LINES_MAX - 1 }, () => event('ack')), ANY);
    expect(tail.flush()).toHaveLength(LINES_MAX);
    expect(tail.lines[0]?.number).toBe(5 * (LINES_MAX - 1));
    tail.take([event('nack')], ANY);
    expect(tail.flush()).toHaveLength(LINES_MAX);
    expect(words(tail.lines.slice(0, 1))).toEqual(['nack orders']);
  });

  it('takes what is wanted, and lets go of what is not wanted any more', () => {
    const tail = new TailOfEvents();
    tail.take([event('ack'), event('ack', 'mail'), event('nack', 'mail')], { types: ['ack', 'nack'], queue: '' });
    tail.take([event('lease')], { types: ['ack', 'nack'], queue: '' });
    expect(words(tail.flush())).toEqual(['nack mail', 'ack mail', 'ack orders']);
    expect(words(tail.keep({ types: ['ack'], queue: 'mail' }))).toEqual(['ack mail']);
  });

  it('says where some are missing, once for each place', () => {
    const tail = new TailOfEvents();
    tail.gap(5);
    expect(tail.flush()).toEqual([]);
    tail.take([event('ack')], ANY);
    tail.gap(2);
    tail.gap(3);
    expect(words(tail.flush())).toEqual(['missed 5', 'ack orders']);
    tail.gap(null);
    expect(words(tail.flush())).toEqual(['missed null', 'ack orders']);
    tail.take([event('nack')], ANY);
    tail.gap(1);
    expect(words(tail.flush())).toEqual(['missed 1', 'nack orders', 'missed null', 'ack orders']);
  });
});
