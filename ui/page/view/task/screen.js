// The screen of a task's terminal, as text.

import { h, setChildren } from "../dom.js";
import { lines } from "../../text/plain.js";

/** @import { Screen } from "../../../types/contract.js" */

export class ScreenPart {
  #text = h("code", { class: "screen-text" });
  element = h(
    "section",
    { role: "region", "aria-label": "Screen", class: "part part-screen", hidden: true },
    h("h2", {}, "Screen"),
    h("pre", { class: "screen", tabindex: "0" }, this.#text),
  );

  /** @param {Screen | undefined} screen */
  update(screen) {
    this.element.hidden = !screen;
    if (!screen) return;
    setChildren(this.#text, JSON.stringify(screen), () => {
      this.#text.style.minWidth = `${screen.columns}ch`;
      return screen.lines.flatMap((line, row) => [...this.#line(lines(line), row, screen), "\n"]);
    });
  }

  /**
   * @param {string} text
   * @param {number} row
   * @param {Screen} screen
   */
  #line(text, row, { cursorRow, cursorColumn, cursorVisible }) {
    if (!cursorVisible || row !== cursorRow) return [text];
    const characters = Array.from(text.padEnd(cursorColumn + 1));
    const at = characters[cursorColumn] ?? " ";
    return [
      characters.slice(0, cursorColumn).join(""),
      h("span", { class: "cursor" }, at),
      characters.slice(cursorColumn + 1).join(""),
    ];
  }
}
