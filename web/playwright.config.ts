import { defineConfig } from '@playwright/test';

// The browser is Debian's: nothing is downloaded. It talks to servers of the tests on this machine, and to nobody else.
export default defineConfig({
  testDir: 'tests/browser',
  outputDir: 'test-results',
  // Two cores: the browser has one, the server and the tests the other.
  workers: 2,
  fullyParallel: true,
  forbidOnly: true,
  retries: 0,
  // A machine may be slow; a test that waits for something that never comes must still end.
  timeout: 120_000,
  expect: { timeout: 30_000 },
  reporter: [['line']],
  use: {
    browserName: 'chromium',
    viewport: { width: 1280, height: 800 },
    colorScheme: 'light',
    timezoneId: 'UTC',
    locale: 'en-GB',
    trace: 'retain-on-failure',
    launchOptions: {
      executablePath: process.env.REDRIVE_CHROMIUM ?? '/usr/bin/chromium',
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
      ],
    },
  },
});
