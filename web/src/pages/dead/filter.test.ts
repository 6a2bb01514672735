import { describe, expect, test } from 'vitest';
import { EVERYTHING, canBeListed, fromQuery, isEverything, toBody, toList, toMessages, toQuery, toWords } from './filter';

const read = (query: string) => fromQuery(new URLSearchParams(query));
const said = (query: string) => read(query).filter;

describe('a filter of dead messages', () => {
  test('is everything where the address says nothing', () => {
    expect(said('queue=mail')).toEqual(EVERYTHING);
    expect(isEverything(said(''))).toBe(true);
    expect(toBody(EVERYTHING)).toEqual({});
    expect(toWords(EVERYTHING)).toBe('');
  });

  test('sends each part that it shows, and shows each part that it sends', () => {
    const filter = said(
      'fingerprint=41dcf490539fd914&reason=buried&type=mail.sent&source=shop&attempts_min=2&attempts_max=9' +
        '&created_after=2026-11-17T10:00:00.000Z&created_before=2026-11-18T10:00:00.000Z&error=time+out&id=a,b',
    );
    expect(toBody(filter)).toEqual({
      fingerprint: '41dcf490539fd914',
      reasons: ['buried'],
      types: ['mail.sent'],
      sources: ['shop'],
      attempts_min: 2,
      attempts_max: 9,
      created_after: '2026-11-17T10:00:00.000Z',
      created_before: '2026-11-18T10:00:00.000Z',
      error: 'time out',
      ids: ['a', 'b'],
    });
    expect(toWords(filter)).toBe(
      'fingerprint:41dcf490539fd914 reason:buried type:mail.sent source:shop attempts>=2 attempts<=9 ' +
        'created>=2026-11-17T10:00:00.000Z created<=2026-11-18T10:00:00.000Z error:"time out" id:a,b',
    );
  });

  test('is the same after a way through the address', () => {
    const filter = said('type=a%20b&error=%22%3C%3E&id=1%202');
    const query = new URLSearchParams(Object.entries(toQuery(filter)).map(([name, value]) => [name, String(value)]));
    expect(fromQuery(query)).toEqual({ filter, problems: [] });
  });

  test('says what of an address it could not read', () => {
    expect(read('reason=burried&attempts_min=-1&attempts_max=many&created_after=yesterday&created_before=%20&type=a')).toEqual({
      filter: { ...EVERYTHING, type: 'a' },
      problems: [
        { part: 'reason', value: 'burried' },
        { part: 'attempts_min', value: '-1' },
        { part: 'attempts_max', value: 'many' },
        { part: 'created_after', value: 'yesterday' },
        { part: 'created_before', value: ' ' },
      ],
    });
    expect(read('reason=&attempts_min=&created_after=&type=').problems).toEqual([]);
    expect(read('reason=buried&attempts_max=0&created_before=2026-11-18').problems).toEqual([]);
  });

  test('shows where a part ends that looks like another', () => {
    expect(toWords(said('type=a reason:buried'))).toBe('type:"a reason:buried"');
    expect(toWords(said('error=%22'))).toBe('error:"\\""');
  });

  test('of ids is a list, however they are divided', () => {
    expect(toBody(said('id=a%20%0Ab,,c')).ids).toEqual(['a', 'b', 'c']);
    expect(toList(said('id=a b')).id).toBe('a,b');
  });

  test('leads to the list of messages only where that shows the same', () => {
    expect(toMessages(said('reason=buried'))).toMatchObject({ state: 'dead', reason: 'buried' });
    expect(toMessages(said('created_after=2026-11-17T10:00:00.000Z'))).toBeNull();
    expect(toMessages(said('type=a,b'))).toBeNull();
  });

  test('with a comma in a type cannot be said to a list', () => {
    expect(canBeListed(said('type=a'))).toBe(true);
    expect(canBeListed(said('type=a,b'))).toBe(false);
    expect(canBeListed(said('source=,'))).toBe(false);
  });
});
