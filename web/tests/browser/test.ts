// What every test of the page is given: a server, and a page that is watched. A test in which the page logged an error, broke its own
// policy, threw, or opened a dialog of the browser has failed, whatever else it shows.

import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { extname, join } from 'node:path';
import { type BrowserContext, type Page, test as base, expect } from '@playwright/test';
import { Server, type Wanted } from './server';

export { expect };
export type { Server };

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The policy of the page, for `serveFrom`; the binary has its own. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'self'; " +
  "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html";

/** What a page did that no page may do. */
class Watched {
  readonly wrongs: string[] = [];
  /** What is expected, and no wrong: texts that a message has in it. */
  readonly allowed: RegExp[] = [];

  note(wrong: string): void {
    if (!this.allowed.some((allowed) => allowed.test(wrong))) this.wrongs.push(wrong);
  }
}

export interface Dashboard {
  /** Opens a path of the page, and waits until it is live. */
  open: (path?: string) => Promise<void>;
  /** Another tab of the same browser, which is watched as well. */
  another: () => Promise<Page>;
  /** Signs in with a key. */
  signIn: (token: string) => Promise<void>;
  /** Whether axe finds anything, in the theme that is shown. */
  accessible: (what: string) => Promise<void>;
  /** Takes a picture in both themes, and lets axe look at each. */
  pictures: (name: string) => Promise<void>;
  /** What the page puts on the clipboard when this is done. The page itself may not read it. */
  copied: (doing: () => Promise<void>) => Promise<string>;
  /** Says that an error of the console is expected: a server that is killed cannot be reached. */
  allow: (wrong: RegExp) => void;
}

interface Fixtures {
  wanted: Wanted;
  server: Server;
  dashboard: Dashboard;
}

export const test = base.extend<Fixtures>({
  wanted: [{}, { option: true }],

  server: async ({ wanted }, use) => {
    const server = await Server.start(wanted);
    await use(server);
    await server.end();
  },

  dashboard: async ({ page, server }, use) => {
    const watched = new Watched();
    await watch(page, watched);
    if (process.env.REDRIVE_DIST) await serveFrom(page.context(), process.env.REDRIVE_DIST);
    await use({
      open: async (path = '/') => {
        await page.goto(server.origin + server.base + path);
        await expect(page.locator('h1').first()).toBeVisible();
      },
      another: async () => {
        const other = await page.context().newPage();
        await watch(other, watched);
        return other;
      },
      signIn: async (token) => {
        await page.getByLabel('API key').fill(token);
        await page.getByRole('button', { name: 'Sign in' }).click();
        await expect(page.getByRole('navigation', { name: 'Pages' })).toBeVisible();
      },
      accessible: (what) => accessible(page, what),
      pictures: (name) => pictures(page, name),
      copied: async (doing) => {
        await page.context().grantPermissions(['clipboard-write']);
        await page.evaluate('delete window.redriveTestCopied');
        await doing();
        // Waiting inside of the page would be an eval, which its policy forbids.
        let text: string | undefined;
        await expect.poll(async () => (text = await page.evaluate('window.redriveTestCopied'))).toBeDefined();
        return text ?? '';
      },
      allow: (wrong) => {
        watched.allowed.push(wrong);
      },
    });
    expect(watched.wrongs, 'what the page did wrong').toEqual([]);
  },
});

async function watch(page: Page, watched: Watched): Promise<void> {
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') watched.note(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => watched.note(`error: ${error.message}`));
  page.on('dialog', (dialog) => {
    watched.note(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    if (!/^(http:\/\/127\.0\.0\.1:|data:)/.test(request.url())) watched.note(`request: ${request.url()}`);
  });
  await page.exposeFunction('redriveTestViolation', (text: string) => watched.note(`policy: ${text}`));
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => {
      (window as unknown as { redriveTestViolation: (text: string) => void }).redriveTestViolation(
        `${event.violatedDirective} ${event.blockedURI} ${event.sample}`,
      );
    });
    const { clipboard } = navigator;
    const write = clipboard.writeText.bind(clipboard);
    clipboard.writeText = async (text) => {
      await write(text);
      Object.assign(window, { redriveTestCopied: text });
    };
  });
}

/** The page from a folder instead of from the binary, for who works on it: nothing has to be compiled in between. */
async function serveFrom(context: BrowserContext, folder: string): Promise<void> {
  const kinds: Record<string, string> = { '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };
  // A server below another path writes that into its page: only it can show it.
  await context.route(/^http:\/\/127\.0\.0\.1:\d+\/(?!v1\/|test\/|openapi|ops\/)/, async (route) => {
    const { pathname } = new URL(route.request().url());
    const path = join(folder, pathname);
    const found = pathname !== '/' && existsSync(path);
    const headers = { 'content-security-policy': POLICY };
    if (found) await route.fulfill({ path, contentType: kinds[extname(path)] ?? 'application/octet-stream' });
    else await route.fulfill({ path: join(folder, 'index.html'), contentType: 'text/html', headers });
  });
}

async function accessible(page: Page, what: string): Promise<void> {
  // Through the protocol, which the policy of the page says nothing about.
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(AXE);
  const found = (await page.evaluate(`axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })`)) as {
    violations: { id: string; help: string; nodes: { html: string; failureSummary?: string }[] }[];
  };
  const told = found.violations.map(
    ({ id, help, nodes }) => `${id}: ${help}\n${nodes.slice(0, 5).map((node) => `  ${node.html.slice(0, 200)}\n  ${node.failureSummary ?? ''}`).join('\n')}`,
  );
  expect(told, `axe: ${what}`).toEqual([]);
}

async function pictures(page: Page, name: string): Promise<void> {
  for (const theme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: theme });
    await page.screenshot({ path: `screenshots/${name}-${theme}.png` });
    await accessible(page, `${name}, ${theme}`);
  }
  await page.emulateMedia({ colorScheme: 'light' });
}
