// Results of calls, shown for some seconds.

import { h } from "./dom.js";
import { icon } from "./icons.js";

const SHOWN = 8_000;
const MOST = 4;

export class Messages {
  #results = h("div", { role: "status", "aria-label": "Messages" });
  #failures = h("div", { role: "alert" });
  element = h("div", { class: "messages" }, this.#results, this.#failures);

  /**
   * Shows a result, and returns a function that takes it away.
   * @param {string} text
   */
  show(text) {
    return this.#add(this.#results, text, "message");
  }

  /** @param {string} text */
  fail(text) {
    this.#add(this.#failures, text, "message message-failure");
  }

  /**
   * @param {HTMLElement} list
   * @param {string} text
   * @param {string} style
   */
  #add(list, text, style) {
    const message = h("p", { class: style });
    const close = h(
      "button",
      { class: "plain", "aria-label": "Close message", click: () => message.remove() },
      icon("failed"),
    );
    message.append(h("span", {}, text), close);
    list.append(message);
    while (list.childElementCount > MOST) list.firstElementChild?.remove();
    setTimeout(() => message.remove(), SHOWN);
    return () => message.remove();
  }
}
