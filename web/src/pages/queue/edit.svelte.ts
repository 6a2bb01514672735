// Settings of a queue while somebody types them. What was typed is never lost: not when the server refuses it, and not when somebody
// else changes the queue meanwhile.

import { type Schema, get, put } from '../../lib/api/client';
import { Problem } from '../../lib/api/problem';
import { type Field, type Form, type Wrong, configOf, formOf, rebase, same } from './form';
import { placed, unplaced } from './placed';
import { type Config, type Setting, SETTINGS, type SettingKey, shownOf, valueOf } from './settings';

/** A setting that somebody else changed, and what it is now. */
export interface Change {
  key: SettingKey;
  now: string;
}

const read = (view: Schema['QueueView']): Form => formOf(view.config as Config, view.settings as Config);

export class Edit {
  #base: Schema['QueueView'];
  #before: Form;

  form = $state.raw<Form>({} as Form);
  /** What the server refused when it was to be saved. */
  problem = $state.raw<Problem | null>(null);
  /** What the server refuses of the policy while it is typed. */
  preview = $state.raw<Problem | null>(null);
  /** What somebody else changed; nothing where nobody did. */
  meanwhile = $state.raw<Change[] | null>(null);
  saving = $state(false);

  constructor(view: Schema['QueueView']) {
    this.#base = view;
    this.#before = read(view);
    this.form = this.#before;
  }

  /** What is typed, as it would be sent. */
  typed = $derived(configOf(this.form, this.config()));
  wrong: Wrong = $derived({ ...placed(this.preview), ...placed(this.problem), ...this.typed.wrong });
  /** What of the refusal stands at no field. */
  general = $derived(this.problem === null ? null : unplaced(this.problem));
  changed = $derived(SETTINGS.some(({ key }) => !same(this.form[key], this.before()[key])));

  // Derived values are made before the constructor has run; they read these when they are asked.
  config(): Config {
    return this.#base.config as Config;
  }
  before(): Form {
    return this.#before;
  }

  set(key: SettingKey, field: Field): void {
    this.form = { ...this.form, [key]: field };
    this.problem = null;
  }

  /** What the default is, where that is known: the API says what is in force, which is the default where nothing is set. */
  usual(setting: Setting): string | undefined {
    if (this.#base.set.includes(setting.key)) return undefined;
    return shownOf(setting, valueOf(this.#base.settings as Config, setting.key));
  }

  /** Sets what was typed, if the queue is still as it was seen. Answers whether it is set. */
  async save(): Promise<boolean> {
    if (Object.keys(this.typed.wrong).length > 0 || this.saving) return false;
    this.saving = true;
    this.problem = null;
    this.meanwhile = null;
    const queue = this.#base.name;
    try {
      const headers = { 'if-match': `"${this.#base.version}"` };
      await put('/v1/queues/{queue}', { path: { queue }, body: { config: this.typed.config }, headers });
      return true;
    } catch (cause) {
      await this.#refused(cause);
      return false;
    } finally {
      this.saving = false;
    }
  }

  async #refused(cause: unknown): Promise<void> {
    try {
      if (!(cause instanceof Problem) || cause.status !== 412) throw cause;
      this.#look(await get('/v1/queues/{queue}', { path: { queue: this.#base.name } }));
    } catch (reason) {
      this.problem = reason instanceof Problem ? reason : new Problem(0, 'PAGE_ERROR', String(reason));
    }
  }

  /** Takes what is set now as what was seen, and what was typed over it. */
  #look(now: Schema['QueueView']): void {
    const next = read(now);
    const { form, changed } = rebase(this.form, this.#before, next);
    const settings = now.settings as Config;
    this.#base = now;
    this.#before = next;
    this.form = form;
    this.meanwhile = SETTINGS.filter(({ key }) => changed.includes(key)).map((setting) => ({
      key: setting.key,
      now: shownOf(setting, valueOf(settings, setting.key)),
    }));
  }
}
