import { describe, expect, it } from 'vitest';
import { Problem } from '../../lib/api/problem';
import { forEach, upTo } from './many';

const numbers = (count: number) => Array.from({ length: count }, (_, at) => at);

describe('forEach', () => {
  it('calls for each once, some at a time', async () => {
    let under = 0;
    let most = 0;
    const called: number[] = [];
    const outcome = await forEach(numbers(50), async (one) => {
      most = Math.max(most, ++under);
      called.push(one);
      await Promise.resolve();
      under--;
    });
    expect(outcome).toEqual({ done: 50, late: 0 });
    expect(called.sort((one, other) => one - other)).toEqual(numbers(50));
    expect(most).toBe(6);
  });

  it('goes on where a lease has ended before', async () => {
    const told: number[] = [];
    const outcome = await forEach(
      numbers(4),
      (one) => (one === 1 ? Promise.reject(new Problem(404, 'NOT_FOUND', '')) : one === 2 ? Promise.reject(new Problem(409, 'LEASE_LOST', '')) : Promise.resolve()),
      ({ done, late }) => told.push(done + late),
    );
    expect(outcome).toEqual({ done: 2, late: 2 });
    expect(told).toEqual([1, 2, 3, 4]);
  });

  it('stops at what is refused otherwise, and says why', async () => {
    let calls = 0;
    const refused = forEach(numbers(1_000), () => {
      calls++;
      return Promise.reject(new Problem(403, 'FORBIDDEN', 'no'));
    });
    await expect(refused).rejects.toThrow('no');
    expect(calls).toBeLessThanOrEqual(6);
  });
});

describe('upTo', () => {
  /** Does as many as there are, and notes how many it was asked for. */
  function doing(there: number) {
    const asked: number[] = [];
    let left = there;
    const call = (limit: number) => {
      asked.push(limit);
      const did = Math.min(limit, left);
      left -= did;
      return Promise.resolve(did);
    };
    return { asked, call };
  }

  it('does no more than was said, however many there are by then', async () => {
    const { asked, call } = doing(100_000);
    expect(await upTo(2_300, 1_000, call)).toBe(2_300);
    expect(asked).toEqual([1_000, 1_000, 300]);
  });

  it('ends where there are none left', async () => {
    const { asked, call } = doing(1_200);
    expect(await upTo(5_000, 1_000, call)).toBe(1_200);
    expect(asked).toEqual([1_000, 1_000]);
    expect(await upTo(0, 1_000, call)).toBe(0);
    expect(asked).toHaveLength(2);
  });
});
