/** The colours of output in the light and in the dark look of the page. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { newPage, openPage, startDaemon } from "./support/browser.js";
import { openTask, output } from "./support/parts.js";

/** The least contrast of text by WCAG, level AA. */
const LEAST = 4.5;
/** The sixteen backgrounds of a terminal, then two of more colours. */
const BACKS = [
  ...[40, 41, 42, 43, 44, 45, 46, 47],
  ...[100, 101, 102, 103, 104, 105, 106, 107],
  "48;5;226",
  "48;2;0;0;95",
];
/** The usual colour of text, then black, white and bright white. */
const TEXTS = [39, 30, 37, 97];

/**
 * The contrast of two colours of the form `rgb(1, 2, 3)`.
 * @param {string} one
 * @param {string} other
 */
function contrast(one, other) {
  const [darker = 0, lighter = 0] = [one, other].map(luminance).sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

/** @param {string} colour */
function luminance(colour) {
  const [red = 0, green = 0, blue = 0] = (colour.match(/\d+/g) ?? []).map((text) => {
    const part = Number(text) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
  /** H3 */
  test(`text on the backgrounds of a terminal is readable in the ${colorScheme} look`, async (t) => {
    const daemon = await startDaemon(t);
    const codes = BACKS.flatMap((back) => TEXTS.map((text) => `${text};${back}`));
    const script = codes.map((code) => `printf '\\033[${code}mtext ${code}\\033[0m\\n'`).join("\n");
    const { id } = await daemon.script(script);
    const page = await newPage(t, {
      context: { colorScheme, viewport: { width: 1280, height: 2000 } },
    });
    await openPage(page, daemon);
    await openTask(page, id);
    for (const code of codes) {
      const part = output(page).getByText(`text ${code}`, { exact: true }).last();
      const { color, backgroundColor } = await part.evaluate((part) => {
        const { color, backgroundColor } = getComputedStyle(part);
        return { color, backgroundColor };
      });
      const found = contrast(color, backgroundColor);
      assert.ok(found >= LEAST, `${code}: ${color} on ${backgroundColor} has ${found.toFixed(2)}`);
    }
  });
}
