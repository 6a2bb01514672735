// The one question before something that cannot be undone: what exactly, how many, and what is lost. It is counted when it is asked and
// once more before it is done: whoever agreed has agreed to a number.

import { Problem } from './api/problem';
import { notices } from './notices.svelte';

/** What is about to be done. */
export interface Question {
  title: string;
  /** What happens, as a sentence. */
  effect: string;
  /** How many messages or things it is about; counted by the server, and shown exactly. */
  count?: () => Promise<number>;
  /** The filter that is sent, word for word. */
  filter?: string;
  /** Whether and how it can be undone, as a sentence. */
  undo: string;
  /** What must be typed before it can be done, for what cannot be undone; it may depend on how many there are. */
  typed?: string | ((count: number) => string | undefined);
  /** The word on the button. */
  verb: string;
  danger?: boolean;
  /** Does it. */
  run: () => Promise<void>;
  /** What to say when it is done. */
  done?: string;
}

class Confirm {
  question = $state.raw<Question | null>(null);
  counted = $state<number | null>(null);
  /** How many there were when somebody agreed, where there were others by then. */
  before = $state<number | null>(null);
  problem = $state.raw<Problem | null>(null);
  running = $state(false);

  /** Asks. */
  ask(question: Question): void {
    this.question = question;
    this.counted = null;
    this.before = null;
    this.problem = null;
    this.running = false;
    void question.count?.().then(
      (counted) => {
        if (this.question === question) this.counted = counted;
      },
      (cause: unknown) => {
        if (this.question === question) this.problem = asProblem(cause);
      },
    );
  }

  close(): void {
    if (!this.running) this.question = null;
  }

  /** Does what was asked about. */
  async run(): Promise<void> {
    const { question } = this;
    if (question === null || this.running) return;
    this.running = true;
    this.problem = null;
    try {
      if (await this.#hasChanged(question)) return;
      await question.run();
      // What was to be done may have turned out to be something else, and is asked about anew.
      if (this.question !== question) return;
      this.question = null;
      if (question.done !== undefined) notices.good(question.done);
    } catch (cause) {
      this.problem = asProblem(cause);
    } finally {
      this.running = false;
    }
  }

  /** Counts again, and says whether there are others than somebody has agreed to. Then that is what is asked about. */
  async #hasChanged({ count }: Question): Promise<boolean> {
    if (count === undefined) return false;
    const { counted } = this;
    this.counted = await count();
    if (this.counted === counted) return false;
    this.before = counted;
    return true;
  }
}

function asProblem(cause: unknown): Problem {
  return cause instanceof Problem ? cause : new Problem(0, 'PAGE_ERROR', String(cause));
}

export const confirm = new Confirm();

/** Does something that needs no question, and says how it went. */
export async function attempt(work: () => Promise<unknown>, done?: string): Promise<boolean> {
  try {
    await work();
    if (done !== undefined) notices.good(done);
    return true;
  } catch (cause) {
    notices.bad(asProblem(cause).message);
    return false;
  }
}
