import { expect, test } from 'vitest';
import { fromInput, toInput } from './when';

test('a moment is typed in the zone that is shown', () => {
  expect(toInput('2026-11-17T10:00:05.000Z', 'utc')).toBe('2026-11-17T10:00:05');
  expect(fromInput('2026-11-17T10:00:05', 'utc')).toBe('2026-11-17T10:00:05.000Z');
  expect(fromInput('2026-11-17T10:00', 'utc')).toBe('2026-11-17T10:00:00.000Z');
});

test('a moment is the same after a way through the input, in either zone', () => {
  for (const zone of ['utc', 'local'] as const) {
    expect(fromInput(toInput('2026-07-01T23:59:59.000Z', zone), zone)).toBe('2026-07-01T23:59:59.000Z');
  }
});

test('what is no moment is nothing', () => {
  expect(toInput('', 'utc')).toBe('');
  expect(toInput('soon', 'local')).toBe('');
  expect(fromInput('', 'utc')).toBe('');
  expect(fromInput('soon', 'utc')).toBe('');
});
