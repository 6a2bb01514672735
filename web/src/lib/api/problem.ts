// What the server refused, and why: RFC 9457, as the server writes it.

/** A field of a request that is wrong. */
export interface FieldProblem {
  pointer: string;
  detail: string;
}

/** A request that came to nothing. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly fields: readonly FieldProblem[] = [],
    readonly advice: string = 'give_up',
  ) {
    super(detail);
    this.name = 'Problem';
  }

  /** Whether the server could not be reached at all. */
  get unreachable(): boolean {
    return this.status === 0;
  }

  /** Whether the server wants a key, or another one. */
  get unauthenticated(): boolean {
    return this.status === 401;
  }

  /** What is wrong with a field of the body, by its place in it. */
  at(pointer: string): string | undefined {
    return this.fields.find((field) => field.pointer === pointer || field.pointer === `/${pointer}`)?.detail;
  }
}

/** Reads a refusal. What is none of ours, such as the page of a proxy, is told by its status. */
export async function problemOf(response: Response): Promise<Problem> {
  const nothing = () => new Problem(response.status, 'HTTP_ERROR', `HTTP ${response.status}`);
  try {
    const body: unknown = await response.json();
    if (typeof body !== 'object' || body === null) return nothing();
    const said = body as Record<string, unknown>;
    if (typeof said.code !== 'string' || typeof said.detail !== 'string') return nothing();
    const fields = Array.isArray(said.errors) ? (said.errors as FieldProblem[]) : [];
    const advice = typeof said.advice === 'string' ? said.advice : undefined;
    return new Problem(response.status, said.code, said.detail, fields, advice);
  } catch {
    return nothing();
  }
}
