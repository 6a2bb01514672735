// Who uses the page. The key is kept in this tab, or on this device where the user says so, and is shown to the server in a
// header: nothing that a browser sends by itself lets anybody in, so no other page can act for the user.

import { type Grant, type Scope, allows, role } from './api/access';
import { type Schema, credentials, get } from './api/client';
import type { Problem } from './api/problem';

const KEPT = 'redrive.key';

type State = 'asking' | 'in' | 'out';

class Session {
  /** Whether the server has let the user in, or is being asked. */
  state = $state<State>('asking');
  /** Who the server takes the user for. */
  who = $state<Schema['WhoAmI'] | null>(null);
  /** Why the user is not in, where there was a key. */
  problem = $state<Problem | null>(null);
  /** Where the key is kept: in this tab, or on this device. */
  kept = $state<'tab' | 'device'>('tab');

  constructor() {
    const inTab = sessionStorage.getItem(KEPT);
    credentials.token = inTab ?? localStorage.getItem(KEPT);
    if (inTab === null) this.kept = 'device';
    credentials.refused = (problem, token) => this.#refused(problem, token);
  }

  #grants = $derived<readonly Grant[]>(
    this.who === null ? [] : this.who.keys_needed ? (this.who.key?.grants ?? []) : [{ scope: 'admin', queues: '*' }],
  );

  /** The most that the user may do anywhere. */
  role = $derived(role(this.#grants));

  /** Whether something would be allowed: over one queue, or over any. */
  may(scope: Scope, queue?: string): boolean {
    return allows(this.#grants, scope, queue);
  }

  /** Whether there is a key to show. */
  get hasKey(): boolean {
    return credentials.token !== null;
  }

  /** Asks the server who the user is. */
  async open(): Promise<void> {
    try {
      if (credentials.token === null && (await wantsKey())) {
        this.problem = null;
        this.state = 'out';
        return;
      }
      this.who = await get('/v1/whoami');
      this.problem = null;
      this.state = 'in';
    } catch (problem) {
      const { unauthenticated } = problem as Problem;
      this.problem = credentials.token === null && unauthenticated ? null : (problem as Problem);
      this.state = 'out';
      // A key that ended while nobody looked; one that could not be shown to a server may still be good.
      if (unauthenticated) this.#drop(credentials.token);
    }
  }

  /** Shows a key to the server, and keeps it where that lets the user in. */
  async signIn(token: string, remember: boolean): Promise<void> {
    credentials.token = token.trim();
    await this.open();
    if (this.state !== 'in') {
      credentials.token = null;
      return;
    }
    (remember ? localStorage : sessionStorage).setItem(KEPT, credentials.token);
    // What is in the tab comes before what is kept on the device, which other tabs may use as well.
    if (remember) sessionStorage.removeItem(KEPT);
    this.kept = remember ? 'device' : 'tab';
  }

  /** Forgets the key, here and on this device. */
  signOut(): void {
    this.#forget();
    this.who = null;
    this.problem = null;
    this.state = 'out';
  }

  #forget(): void {
    credentials.token = null;
    sessionStorage.removeItem(KEPT);
    localStorage.removeItem(KEPT);
  }

  /** Forgets a key that the server does not take. Another one that is kept, by another tab for one, is not forgotten for that. */
  #drop(token: string | null): void {
    credentials.token = null;
    for (const kept of [sessionStorage, localStorage]) if (kept.getItem(KEPT) === token) kept.removeItem(KEPT);
  }

  /** The server does not take the key any more. */
  #refused(problem: Problem, token: string | null): void {
    // An answer may be late, and the user in with another key.
    if (this.state !== 'in' || token !== credentials.token) return;
    this.#drop(token);
    this.problem = problem;
    this.state = 'out';
  }
}

/** Whether a key is wanted, where the server tells. To ask and be refused would be an error in the console of whoever looks for one. */
async function wantsKey(): Promise<boolean> {
  return ((await get('/v1/time')) as { keys_needed?: boolean }).keys_needed === true;
}

export const session = new Session();
