// How long the page was busy at a time. What counts is the time that the processor worked for the page: a machine that has other things to
// do makes every task long by the clock, and none by this measure.

import type { Browser, Page } from '@playwright/test';

interface Traced {
  name: string;
  ph: string;
  pid: number;
  tid: number;
  /** The time of the processor, in microseconds; what took less than one has none. */
  tdur?: number;
  args?: { name?: string };
}

/** The tasks of the page's main thread while something was done, the longest first, in milliseconds. */
export async function tasksOf(browser: Browser, page: Page, work: () => Promise<void>): Promise<number[]> {
  await browser.startTracing(page, { categories: ['disabled-by-default-devtools.timeline', '__metadata'] });
  await work();
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: Traced[] };
  const threads = traceEvents.filter((event) => event.name === 'thread_name' && event.args?.name === 'CrRendererMain');
  const isMain = (event: Traced) => threads.some(({ pid, tid }) => pid === event.pid && tid === event.tid);
  const tasks = traceEvents.filter((event) => event.name === 'RunTask' && event.ph === 'X' && isMain(event));
  return tasks.map((task) => (task.tdur ?? 0) / 1_000).sort((one, other) => other - one);
}
