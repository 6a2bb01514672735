// What the user has chosen for this device.

export type Theme = 'system' | 'light' | 'dark';
export type Zone = 'local' | 'utc';

interface Kept {
  theme: Theme;
  zone: Zone;
  /** Whether single letters are shortcuts (WCAG 2.1.4 wants a way to switch them off). */
  letters: boolean;
  /** Whether the rail shows its words. */
  wide: boolean;
}

const KEPT = 'redrive.settings';
const USUAL: Kept = { theme: 'system', zone: 'local', letters: true, wide: true };

function read(): Kept {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEPT) ?? '{}');
    const said = (typeof kept === 'object' && kept !== null ? kept : {}) as Partial<Kept>;
    return {
      theme: said.theme === 'light' || said.theme === 'dark' ? said.theme : USUAL.theme,
      zone: said.zone === 'utc' ? 'utc' : USUAL.zone,
      letters: said.letters ?? USUAL.letters,
      wide: said.wide ?? USUAL.wide,
    };
  } catch {
    return USUAL;
  }
}

export const settings = $state(read());

/** Keeps what is chosen, and puts the theme into force. Called once, from the root. */
export function follow(): void {
  $effect(() => {
    localStorage.setItem(KEPT, JSON.stringify(settings));
    const root = document.documentElement;
    if (settings.theme === 'system') root.removeAttribute('data-theme');
    else root.setAttribute('data-theme', settings.theme);
  });
}
