// Shown if the server refuses the page: the token is missing or wrong, or the address is not allowed.

import { h, setText } from "./dom.js";
import { icon } from "./icons.js";

export class Access {
  #reason = h("p", { class: "muted" });
  #field = h("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false" });
  #form = h(
    "div",
    { class: "access-form" },
    h("label", { for: "token" }, "Token"),
    this.#field,
    h("button", { class: "primary", type: "button", click: () => this.#use() }, "Use token"),
  );
  element = h(
    "section",
    { class: "access", role: "region", "aria-label": "Access", hidden: true },
    icon("key"),
    h("h1", {}, "The server refuses this page"),
    this.#reason,
    h(
      "p",
      {},
      "Open the address that ",
      h("code", {}, "heeler dashboard"),
      " prints: it ends in ",
      h("code", {}, "#token=…"),
      ". The token of a daemon with ",
      h("code", {}, "--http"),
      " is in the file ",
      h("code", {}, "token"),
      " of its state directory.",
    ),
    this.#form,
  );

  /** @param {(token: string) => void} onToken */
  constructor(onToken) {
    this.onToken = onToken;
    this.#field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.#use();
    });
  }

  /**
   * @param {boolean} isShown
   * @param {string} reason
   */
  update(isShown, reason) {
    if (isShown) setText(this.#reason, reason);
    this.element.hidden = !isShown;
  }

  #use() {
    const token = this.#field.value.trim();
    this.#field.value = "";
    if (token) this.onToken(token);
  }
}
