// What a key may do, as the server decides it (core/src/access). The page asks here which buttons would fail; the server
// decides all the same.

/** What a grant is for. */
export type Scope = 'read' | 'produce' | 'consume' | 'manage' | 'admin';

/** A scope over some queues. */
export interface Grant {
  scope: string;
  queues: string;
}

function implies(held: string, wanted: Scope): boolean {
  return held === wanted || held === 'admin' || (held === 'manage' && wanted === 'read');
}

/** Whether a pattern takes all of a name; `*` stands for any run of characters. No recursion, whatever the pattern. */
export function glob(pattern: string, name: string): boolean {
  let p = 0;
  let n = 0;
  let star = -1;
  let taken = 0;
  while (n < name.length) {
    if (pattern[p] === '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.length && pattern[p] === name[n]) {
      p++;
      n++;
    } else if (star >= 0) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  while (pattern[p] === '*') p++;
  return p === pattern.length;
}

/** Whether grants allow something: over one queue, or over any where none is named. */
export function allows(grants: readonly Grant[], scope: Scope, queue?: string): boolean {
  return grants.some(
    (grant) => implies(grant.scope, scope) && (queue === undefined || glob(grant.queues, queue)),
  );
}

/** The word for what a key may do at most, for people. */
export function role(grants: readonly Grant[]): Scope | 'none' {
  const order: Scope[] = ['admin', 'manage', 'consume', 'produce', 'read'];
  return order.find((scope) => grants.some((grant) => grant.scope === scope)) ?? 'none';
}
