import { describe, expect, it } from 'vitest';
import { allows, glob, role } from './access';

describe('glob', () => {
  it.each([
    ['*', 'anything', true],
    ['*', '', true],
    ['orders', 'orders', true],
    ['orders', 'orders.eu', false],
    ['orders.*', 'orders.eu', true],
    ['orders.*', 'orders', false],
    ['*.eu', 'orders.eu', true],
    ['*.eu', 'orders.eu.x', false],
    ['a*b*c', 'aXXbYYc', true],
    ['a*b*c', 'aXXbYY', false],
    ['a**b', 'ab', true],
  ])('%s takes %s: %s', (pattern, name, takes) => {
    expect(glob(pattern, name)).toBe(takes);
  });

  it('does not take for ever over many stars', () => {
    expect(glob('*a'.repeat(40), 'a'.repeat(39))).toBe(false);
  });
});

describe('allows', () => {
  const reader = [{ scope: 'read', queues: '*' }];
  const manager = [{ scope: 'manage', queues: 'orders.*' }];

  it('lets whoever manages read, and nobody else do more', () => {
    expect(allows(manager, 'read', 'orders.eu')).toBe(true);
    expect(allows(manager, 'manage', 'orders.eu')).toBe(true);
    expect(allows(manager, 'manage', 'payments')).toBe(false);
    expect(allows(manager, 'produce', 'orders.eu')).toBe(false);
    expect(allows(reader, 'manage', 'orders.eu')).toBe(false);
    expect(allows([{ scope: 'admin', queues: '*' }], 'consume', 'x')).toBe(true);
  });

  it('asks for any queue where none is named', () => {
    expect(allows(manager, 'manage')).toBe(true);
    expect(allows([], 'read')).toBe(false);
  });

  it('has a word for the most that a key may do', () => {
    expect(role([...reader, ...manager])).toBe('manage');
    expect(role([])).toBe('none');
  });
});
