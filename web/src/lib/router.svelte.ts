// Pages by path, and what is filtered by query: every view has an address that can be sent to a colleague.

import { base } from './place';

/** A page that is shown, and what its path said. */
export interface Shown {
  name: string;
  params: Record<string, string>;
}

/** The paths of the pages, the first that fits. `:word` stands for one segment. */
export const ROUTES: readonly (readonly [pattern: string, name: string])[] = [
  ['', 'overview'],
  ['queues', 'queues'],
  ['queues/:queue', 'queue'],
  ['queues/:queue/messages/:id', 'message'],
  ['messages', 'messages'],
  ['leases', 'leases'],
  ['dead', 'dead'],
  ['operations', 'operations'],
  ['operations/:id', 'operation'],
  ['subscriptions', 'subscriptions'],
  ['subscriptions/:id', 'subscription'],
  ['consumers', 'consumers'],
  ['events', 'events'],
  ['access', 'access'],
  ['settings', 'settings'],
];

/** Which page a path below the base means. */
export function match(path: string): Shown {
  const parts = path.split('/').filter((part) => part !== '');
  for (const [pattern, name] of ROUTES) {
    const wanted = pattern.split('/').filter((part) => part !== '');
    if (wanted.length !== parts.length) continue;
    const params: Record<string, string> = {};
    const fits = wanted.every((want, at) => {
      const found = parts[at] ?? '';
      if (!want.startsWith(':')) return want === found;
      try {
        params[want.slice(1)] = decodeURIComponent(found);
        return true;
      } catch {
        return false;
      }
    });
    if (fits) return { name, params };
  }
  return { name: 'nowhere', params: {} };
}

/** What a query says; what is left out or empty is not in the address. */
export type Query = Record<string, string | number | boolean | null | undefined>;

function search(query: Query): string {
  const said = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '' && value !== false) said.set(name, String(value));
  }
  const text = said.toString();
  return text === '' ? '' : `?${text}`;
}

/** The address of a page: `to('queues/:queue', { queue })`, with a query behind it. */
export function to(pattern: string, params: Record<string, string> = {}, query: Query = {}): string {
  const path = pattern.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ''));
  return base + path + search(query);
}

class Router {
  #path = $state(location.pathname);
  #search = $state(location.search);

  /** The page that is shown. */
  shown = $derived(match(this.#path.startsWith(base) ? this.#path.slice(base.length) : this.#path.slice(1)));
  /** What the address says behind the path. */
  query = $derived(new URLSearchParams(this.#search));

  /** Begins to follow links of the page and the buttons of the browser. */
  start(): void {
    addEventListener('popstate', () => this.#read());
    document.addEventListener('click', (event) => this.#follow(event));
  }

  /** Goes to an address of the page. */
  go(href: string, how: 'push' | 'replace' = 'push'): void {
    const before = this.shown.name + JSON.stringify(this.shown.params);
    if (how === 'push') history.pushState(null, '', href);
    else history.replaceState(null, '', href);
    this.#read();
    if (before !== this.shown.name + JSON.stringify(this.shown.params)) scrollTo(0, 0);
  }

  /** Says something else in the query, and leaves the rest of the address. */
  set(query: Query, how: 'push' | 'replace' = 'replace'): void {
    const said: Query = Object.fromEntries(this.query);
    this.go(location.pathname + search({ ...said, ...query }), how);
  }

  #read(): void {
    this.#path = location.pathname;
    this.#search = location.search;
  }

  #follow(event: MouseEvent): void {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest('a');
    if (!link || link.target !== '' || link.hasAttribute('download') || link.origin !== location.origin) return;
    if (!link.pathname.startsWith(base)) return;
    if (link.pathname === location.pathname && link.search === location.search && link.hash !== '') return;
    event.preventDefault();
    this.go(link.href);
  }
}

export const router = new Router();
