// The state and the conditions of a task.

import { stateKey, stateText } from "../text/task.js";
import { h, setAttribute, setChildren, setText } from "./dom.js";
import { icon } from "./icons.js";

/** @import { BackgroundTask } from "../../types/contract.js" */
/** @import { Flag } from "../text/task.js" */

/** The state as an icon and a word. */
export class StateBadge {
  #icon = h("span", { class: "state-icon" });
  #text = h("span", { class: "state-text" });
  element = h("span", { class: "state" }, this.#icon, this.#text);

  /** @param {BackgroundTask} task */
  update(task) {
    const key = stateKey(task);
    setAttribute(this.element, "data-state", key);
    setChildren(this.#icon, key, () => [icon(key)]);
    setText(this.#text, stateText(task));
  }
}

/**
 * Shows conditions as badges.
 * @param {HTMLElement} element
 * @param {readonly Flag[]} flags
 */
export function showFlags(element, flags) {
  setChildren(element, flags.map((flag) => flag.text).join("|"), () =>
    flags.map((flag) => h("span", { class: "badge", "data-flag": flag.key }, flag.text)),
  );
}
