// The bytes that a terminal sends for a key.

/** @type {Readonly<Record<string, string>>} */
const KEYS = {
  Enter: "\r",
  Backspace: "\x7f",
  Tab: "\t",
  Escape: "\x1b",
  ArrowUp: "\x1b[A",
  ArrowDown: "\x1b[B",
  ArrowRight: "\x1b[C",
  ArrowLeft: "\x1b[D",
  Home: "\x1b[H",
  End: "\x1b[F",
  Insert: "\x1b[2~",
  Delete: "\x1b[3~",
  PageUp: "\x1b[5~",
  PageDown: "\x1b[6~",
};

/** @typedef {{key: string, ctrlKey: boolean, altKey: boolean, shiftKey: boolean, metaKey: boolean}} Pressed */

/**
 * The bytes of a key as text; empty if the key is the browser's. Shift and Tab, and Shift and Escape, leave the
 * terminal.
 * @param {Pressed} pressed
 */
export function keyText({ key, ctrlKey, altKey, shiftKey, metaKey }) {
  if (metaKey || (shiftKey && (key === "Tab" || key === "Escape"))) return "";
  const prefix = altKey ? "\x1b" : "";
  if (ctrlKey) {
    const letter = key.toLowerCase();
    if (/^[a-z]$/.test(letter)) return prefix + String.fromCharCode(letter.charCodeAt(0) - 96);
    /** @type {Readonly<Record<string, string>>} */
    const controls = { " ": "\0", "[": "\x1b", "\\": "\x1c", "]": "\x1d" };
    return controls[key] ?? "";
  }
  const known = KEYS[key];
  if (known) return prefix + known;
  return altKey && Array.from(key).length === 1 ? prefix + key : "";
}
