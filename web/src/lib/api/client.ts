// One typed call for each operation of the API. The types are made from the description that the server is tested against.

import { address } from '../place';
import { Problem, problemOf } from './problem';
import type { components, paths } from './schema';

/** The types of the API by name. */
export type Schema = components['schemas'];

type Method = 'get' | 'put' | 'post' | 'delete';
type PathsWith<M extends Method> = {
  [P in keyof paths]: paths[P][M] extends { responses: unknown } ? P : never;
}[keyof paths];

type Parameters<Op, Where extends string> = Op extends { parameters: infer All }
  ? All extends { [W in Where]?: infer Some }
    ? NonNullable<Some>
    : never
  : never;

type Json<Answer> = Answer extends { content: { 'application/json': infer Body } } ? Body : undefined;
type Status<Op> = Op extends { responses: infer All } ? All : never;
/** What an operation answers where it succeeds. */
export type Answer<Op> = Json<Status<Op>[Extract<keyof Status<Op>, 200 | 201 | 202 | 204>]>;
/** What is sent: what has a default may be left out, which the generated types do not say. The server says what is missing. */
export type Sent<T> = T extends readonly unknown[] ? T : T extends object ? { [Name in keyof T]?: Sent<T[Name]> } : T;
type Body<Op> = Op extends { requestBody?: infer Request }
  ? NonNullable<Request> extends { content: { 'application/json': infer Json } }
    ? Sent<Json>
    : never
  : never;

/** What a call says beside its path. */
export interface Call<Op> {
  path?: Parameters<Op, 'path'>;
  query?: Parameters<Op, 'query'>;
  body?: Body<Op>;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Shows who asks, and hears where that is not enough. The session sets it. */
export const credentials: { token: string | null; refused: (problem: Problem, token: string | null) => void } = {
  token: null,
  refused: () => undefined,
};

/** How long a call may take. The server answers within a second; what takes a minute is lost. */
const PATIENCE_MS = 60_000;

/** A path of the API with its parameters, and a query. */
export function target(path: string, call: { path?: object; query?: object }): URL {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = (call.path as Record<string, unknown> | undefined)?.[name];
    if (value === undefined) throw new Error(`${path} needs ${name}`);
    return encodeURIComponent(String(value));
  });
  const url = address(filled);
  for (const [name, value] of Object.entries(call.query ?? {})) {
    if (value !== undefined && value !== null && value !== '') url.searchParams.set(name, String(value));
  }
  return url;
}

/** Asks the server, with what shows who asks. */
export async function ask(url: URL, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers);
  const { token } = credentials;
  if (token !== null) headers.set('authorization', `Bearer ${token}`);
  let response: Response;
  try {
    response = await fetch(url, { ...init, headers, credentials: 'omit', cache: 'no-store', redirect: 'error' });
  } catch (cause) {
    if (init.signal?.aborted) throw cause;
    throw new Problem(0, 'UNREACHABLE', 'the server cannot be reached', [], 'retry');
  }
  if (response.ok) return response;
  const problem = await problemOf(response);
  if (problem.unauthenticated) credentials.refused(problem, token);
  throw problem;
}

async function call<Op>(method: Method, path: string, options: Call<Op>): Promise<Answer<Op>> {
  const patience = AbortSignal.timeout(PATIENCE_MS);
  const signal = options.signal ? AbortSignal.any([options.signal, patience]) : patience;
  const init: RequestInit = { method: method.toUpperCase(), signal, headers: { accept: 'application/json', ...options.headers } };
  if (options.body !== undefined) {
    init.body = JSON.stringify(options.body);
    (init.headers as Record<string, string>)['content-type'] = 'application/json';
  }
  const response = await ask(target(path, options), init);
  if (response.status === 204) return undefined as Answer<Op>;
  return (await response.json()) as Answer<Op>;
}

/** Reads. */
export function get<P extends PathsWith<'get'>>(path: P, options: Call<paths[P]['get']> = {}): Promise<Answer<paths[P]['get']>> {
  return call('get', path, options);
}

/** Does something. */
export function post<P extends PathsWith<'post'>>(path: P, options: Call<paths[P]['post']> = {}): Promise<Answer<paths[P]['post']>> {
  return call('post', path, options);
}

/** Sets something as a whole. */
export function put<P extends PathsWith<'put'>>(path: P, options: Call<paths[P]['put']> = {}): Promise<Answer<paths[P]['put']>> {
  return call('put', path, options);
}

/** Removes something. */
export function remove<P extends PathsWith<'delete'>>(
  path: P,
  options: Call<paths[P]['delete']> = {},
): Promise<Answer<paths[P]['delete']>> {
  return call('delete', path, options);
}
