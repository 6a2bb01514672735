import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  // Relative, so that the page works below any path: the server writes that path into <base>.
  base: './',
  plugins: [svelte()],
  build: {
    target: 'es2022',
    outDir: 'dist',
    emptyOutDir: true,
    // The policy of the page allows no inline script, and every browser that is meant knows module preloading.
    modulePreload: { polyfill: false },
    // A data URL would be one more thing that the policy has to allow.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
  server: {
    // `npm run dev` beside `cargo run --bin redrive -- serve`.
    proxy: { '/v1': 'http://127.0.0.1:7400', '/openapi.json': 'http://127.0.0.1:7400' },
  },
  test: { include: ['src/**/*.test.ts'] },
});
