// The theme that somebody chose, put into force before anything is drawn: the page itself comes later. What was kept may be anything.
try {
  const { theme } = JSON.parse(localStorage.getItem('redrive.settings')) ?? {};
  if (theme === 'light' || theme === 'dark') document.documentElement.setAttribute('data-theme', theme);
} catch {
  // As the system has it, then.
}
