// @vitest-environment node
import { beforeAll, describe, expect, it, vi } from 'vitest';

type Module = typeof import('./router.svelte');
let match: Module['match'];
let to: Module['to'];

beforeAll(async () => {
  vi.stubGlobal('location', { origin: 'http://x', pathname: '/redrive/', search: '' });
  vi.stubGlobal('document', { baseURI: 'http://x/redrive/', addEventListener: () => undefined });
  ({ match, to } = await import('./router.svelte'));
});

describe('match', () => {
  it('finds pages by path and reads what the path says', () => {
    expect(match('')).toEqual({ name: 'overview', params: {} });
    expect(match('queues/')).toEqual({ name: 'queues', params: {} });
    expect(match('queues/a%2Fb')).toEqual({ name: 'queue', params: { queue: 'a/b' } });
    expect(match('queues/a/messages/7')).toEqual({ name: 'message', params: { queue: 'a', id: '7' } });
  });

  it('says so where there is nothing, or what is there cannot be read', () => {
    expect(match('nothing/here').name).toBe('nowhere');
    expect(match('queues/%zz').name).toBe('nowhere');
  });
});

describe('to', () => {
  it('writes addresses below the base, whatever a name has in it', () => {
    expect(to('queues/:queue', { queue: 'a b/../c' })).toBe('/redrive/queues/a%20b%2F..%2Fc');
  });

  it('leaves out what is not said', () => {
    expect(to('messages', {}, { queue: 'a&b', state: '', type: null, page: 0 })).toBe('/redrive/messages?queue=a%26b&page=0');
  });
});
