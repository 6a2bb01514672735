// What the server refused, at the fields that it is about.

import { Problem } from '../../lib/api/problem';
import { type Wrong, placeOf } from './form';

/** What is wrong with settings that have a field. */
export function placed(problem: Problem | null): Wrong {
  const found: Wrong = {};
  for (const { pointer, detail } of problem?.fields ?? []) {
    const place = placeOf(pointer);
    if (place !== undefined) found[place] = detail;
  }
  return found;
}

/** The rest of it: nothing where every part of it stands at a field. */
export function unplaced(problem: Problem): Problem | null {
  const rest = problem.fields.filter(({ pointer }) => placeOf(pointer) === undefined);
  if (problem.fields.length > 0 && rest.length === 0) return null;
  return new Problem(problem.status, problem.code, problem.message, rest, problem.advice);
}
