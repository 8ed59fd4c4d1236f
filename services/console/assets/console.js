// Keys of the console: "/" searches, "j" and "k" step through a list, "?" shows the keys.
// Pages work without this file. It writes nothing to the page except the focus.
'use strict';
(() => {
  const SETTING = 'journeyman-keys';
  let isOn = true;
  try { isOn = localStorage.getItem(SETTING) !== 'off'; } catch { /* The browser keeps no settings. */ }

  const box = document.getElementById('keys-on');
  if (box) {
    box.checked = isOn;
    box.closest('p').hidden = false;
    box.addEventListener('change', () => {
      isOn = box.checked;
      try { localStorage.setItem(SETTING, isOn ? 'on' : 'off'); } catch { /* As above. */ }
    });
  }

  const step = (by) => {
    const links = Array.from(document.querySelectorAll('main a.item')).filter((link) => link.getClientRects().length > 0);
    if (links.length === 0) return false;
    const at = links.indexOf(document.activeElement);
    const next = at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by;
    const link = links[Math.min(Math.max(next, 0), links.length - 1)];
    link.focus();
    link.scrollIntoView({ block: 'nearest' });
    return true;
  };

  document.addEventListener('keydown', (event) => {
    if (!isOn || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target;
    // A key in a field is text.
    if (target instanceof Element && target.closest('input, textarea, select, [contenteditable]')) return;
    const keys = document.getElementById('keys');
    const search = document.getElementById('search');
    let isDone = false;
    if (event.key === '/' && search) { search.focus(); search.select(); isDone = true; }
    if (event.key === 'j') isDone = step(1);
    if (event.key === 'k') isDone = step(-1);
    if (event.key === '?' && keys && keys.togglePopover) { keys.togglePopover(); isDone = true; }
    if (isDone) event.preventDefault();
  });
})();
