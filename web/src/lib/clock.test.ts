// @vitest-environment node
import { beforeEach, describe, expect, it, vi } from 'vitest';

let clock: (typeof import('./clock.svelte'))['clock'];

beforeEach(async () => {
  vi.resetModules();
  vi.stubGlobal('location', { origin: 'http://x' });
  vi.stubGlobal('document', { baseURI: 'http://x/' });
  ({ clock } = await import('./clock.svelte'));
});

/** What is added to `performance.now()` at this moment. */
const offset = () => clock.exact() - performance.now();

describe('clock', () => {
  it('believes the answer that came back fastest', () => {
    clock.take({ offset: 5_000, uncertainty: 80 });
    expect(offset()).toBeCloseTo(5_000, 0);
    clock.take({ offset: 5_030, uncertainty: 10 });
    expect(offset()).toBeCloseTo(5_030, 0);
    clock.take({ offset: 4_980, uncertainty: 200 });
    expect(offset()).toBeCloseTo(5_030, 0);
    expect(clock.known).toBe(true);
  });

  it('forgets old answers, however fast they were', () => {
    clock.take({ offset: 5_000, uncertainty: 1 });
    for (let answer = 0; answer < 5; answer++) clock.take({ offset: 5_400, uncertainty: 50 });
    expect(offset()).toBeCloseTo(5_400, 0);
  });

  it('knows a clock that was moved by an answer that no uncertainty explains', () => {
    clock.take({ offset: 5_000, uncertainty: 2 });
    clock.take({ offset: 3_605_000, uncertainty: 300 });
    expect(offset()).toBeCloseTo(3_605_000, 0);
  });

  it('says how far the clock of this machine is off', () => {
    clock.take({ offset: Date.now() - performance.now() - 3_600_000, uncertainty: 1 });
    expect(clock.skew).toBeGreaterThan(-3_600_500);
    expect(clock.skew).toBeLessThan(-3_599_500);
    expect(clock.now).toBeLessThan(Date.now() - 3_599_000);
  });
});
