// Questions before an action.

import { h } from "./dom.js";

/**
 * @typedef {object} Question
 * @property {string} title
 * @property {(HTMLElement | string)[]} content
 * @property {string} yes The button that does it
 * @property {boolean} [isDanger]
 */

/**
 * Asks, and completes with true if the answer is yes.
 * @param {Question} question
 * @returns {Promise<boolean>}
 */
export function ask({ title, content, yes, isDanger = false }) {
  return new Promise((resolve) => {
    let answer = false;
    const heading = h("h2", { id: "dialog-title" }, title);
    const accept = h("button", { class: isDanger ? "danger" : "primary", type: "button" }, yes);
    const back = h("button", { type: "button" }, "Back");
    const body = content.map((part) => (typeof part === "string" ? h("p", {}, part) : part));
    const dialog = h(
      "dialog",
      { class: "dialog", "aria-labelledby": "dialog-title" },
      heading,
      ...body,
      h("div", { class: "dialog-buttons" }, back, accept),
    );
    accept.addEventListener("click", () => {
      answer = true;
      dialog.close();
    });
    back.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(answer);
    });
    dialog.addEventListener("keydown", (event) => {
      const isOnField = event.target instanceof HTMLInputElement;
      const isOnText =
        event.target instanceof HTMLTextAreaElement && (event.ctrlKey || event.metaKey);
      if (event.key === "Enter" && !event.isComposing && (isOnField || isOnText)) accept.click();
    });
    document.body.append(dialog);
    dialog.showModal();
    const field = dialog.querySelector("textarea, input");
    (field instanceof HTMLElement ? field : accept).focus();
  });
}
