// The search box of the output.

import { MOST_FOUND, Search } from "../../live/search.js";
import { count } from "../../text/units.js";
import { h, setText } from "../dom.js";
import { icon } from "../icons.js";

/** @import { App } from "../app.js" */

/** The time without a key after which the search begins. */
const PAUSE = 250;

export class Find {
  /** The place among the lines found. */
  #at = -1;
  #timer = 0;
  #isWaiting = false;
  field = h("input", {
    type: "search",
    "aria-label": "Search output",
    placeholder: "Search output",
    spellcheck: "false",
    autocomplete: "off",
    input: () => this.#typed(),
  });
  #status = h("span", { role: "status", "aria-label": "Matches", class: "muted matches" });
  element = h(
    "span",
    { class: "find" },
    h("span", { class: "search" }, icon("search"), this.field),
    h(
      "button",
      {
        type: "button",
        class: "plain",
        "aria-label": "Previous match",
        title: "Previous match (N)",
        click: () => this.step(-1),
      },
      icon("up"),
    ),
    h(
      "button",
      {
        type: "button",
        class: "plain",
        "aria-label": "Next match",
        title: "Next match (n)",
        click: () => this.step(1),
      },
      icon("down"),
    ),
    this.#status,
  );

  /**
   * @param {App} app
   * @param {string} taskId
   * @param {{onChange: () => void, onPlace: (offset: number) => void, from: () => number}} hooks
   */
  constructor(app, taskId, hooks) {
    this.hooks = hooks;
    this.search = new Search(app.client, taskId, () => {
      if (this.#isWaiting) this.#first();
      hooks.onChange();
    });
  }

  get query() {
    return this.search.query;
  }

  /** The offset of the line that was stepped to. */
  get place() {
    return this.search.found[this.#at];
  }

  update() {
    const { found, isFull } = this.search;
    const all = `${count(found.length)}${isFull ? "+" : ""}`;
    setText(this.#status, this.#text(this.#at >= 0 ? `${count(this.#at + 1)} of ${all}` : all));
    this.#status.title = isFull ? `The first ${count(MOST_FOUND)} lines` : "";
  }

  /** @param {string} place */
  #text(place) {
    const { query, found, isRunning, failure } = this.search;
    if (failure || !query) return failure;
    if (isRunning && !found.length) return "Searching …";
    return `${place}${found.length === 1 ? " line" : " lines"}${isRunning ? " …" : ""}`;
  }

  /** @param {number} by */
  step(by) {
    const { found } = this.search;
    if (!found.length) return;
    this.#at = (this.#at + by + found.length) % found.length;
    this.#show();
  }

  /** @param {KeyboardEvent} event @returns {boolean} */
  key(event) {
    if (event.key === "Enter") {
      if (this.field.value === this.query) this.step(event.shiftKey ? -1 : 1);
      else this.#start();
    } else if (event.key === "Escape") {
      this.field.value = "";
      this.#start();
    } else {
      return false;
    }
    return true;
  }

  close() {
    clearTimeout(this.#timer);
    this.search.stop();
  }

  #typed() {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => this.#start(), PAUSE);
  }

  #start() {
    clearTimeout(this.#timer);
    this.#at = -1;
    this.#isWaiting = this.field.value !== "";
    void this.search.start(this.field.value);
  }

  /** Goes to the first line found at the present place or after it; to the first one of all at the end. */
  #first() {
    const { found, isRunning } = this.search;
    const from = this.hooks.from();
    const at = found.findIndex((offset) => offset >= from);
    if (at < 0 && isRunning) return;
    this.#isWaiting = false;
    if (!found.length) return;
    this.#at = Math.max(0, at);
    this.#show();
  }

  #show() {
    const { place } = this;
    if (place !== undefined) this.hooks.onPlace(place);
    this.hooks.onChange();
  }
}
