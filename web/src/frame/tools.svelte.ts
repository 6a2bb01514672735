// What lies over the page when it is asked for: the list of keys, and the palette.

import { type Theme, settings } from '../lib/settings.svelte';

export const tools = $state<{ open: 'keys' | 'palette' | null }>({ open: null });

const THEMES: readonly Theme[] = ['system', 'light', 'dark'];

export function nextTheme(): void {
  settings.theme = THEMES[(THEMES.indexOf(settings.theme) + 1) % THEMES.length] ?? 'system';
}
