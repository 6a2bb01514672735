// The words of the page. A second language is a file beside `en.ts` with the same keys, which the compiler checks, and a line here.

import { en } from './en';

export type Texts = typeof en;

const LANGUAGES: Record<string, Texts> = { en };

const wanted = globalThis.navigator?.languages?.map((language) => language.slice(0, 2)) ?? [];
const chosen = wanted.find((language) => language in LANGUAGES) ?? 'en';

export const t: Texts = LANGUAGES[chosen] ?? en;
