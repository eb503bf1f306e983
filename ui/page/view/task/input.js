// The input of a task: lines to a stdin, or keys to a terminal.

import { keyText } from "../../output/keys.js";
import { count, size } from "../../text/units.js";
import { h, setAttribute, setText } from "../dom.js";

/** @import { BackgroundTask } from "../../../types/contract.js" */
/** @import { App } from "../app.js" */

/** Windows without room for a long text, and machines without a keyboard. */
const SMALL = matchMedia("(max-width: 640px), (pointer: coarse)");

/** @type {Record<"keys" | "line", {small: string, usual: string}>} */
const PLACEHOLDERS = {
  keys: {
    small: "Keys for the terminal",
    usual: "Keys typed here go to the terminal. Shift+Esc leaves.",
  },
  line: { small: "A line for the task", usual: "A line for the task. Enter sends it." },
};

export class InputPart {
  #writer;
  #state = h("span", { class: "muted", role: "status", "aria-label": "State of the input" });
  #takeOver = h(
    "button",
    { type: "button", hidden: true, click: () => this.#writer.takeOver() },
    "Take over",
  );
  #close = h("button", { type: "button", click: () => this.#writer.end() }, "Close input");
  #send = h("button", { type: "button", click: () => this.#sendLine() }, "Send input");
  #field = h("textarea", {
    rows: 1,
    spellcheck: "false",
    autocomplete: "off",
    autocapitalize: "off",
  });
  element;

  /**
   * @param {App} app
   * @param {BackgroundTask} task
   * @param {() => void} onLeave Called when a key leaves the input
   */
  constructor(app, task, onLeave) {
    this.onLeave = onLeave;
    this.isTerminal = task.spec?.terminal !== undefined;
    this.#writer = app.inputs.of(task.id);
    const field = this.#field;
    field.setAttribute("aria-label", this.isTerminal ? "Terminal keys" : "Input");
    if (this.isTerminal) this.#listenForKeys();
    else field.addEventListener("keydown", (event) => this.#lineKey(event));
    this.#send.hidden = this.isTerminal;
    this.element = h(
      "section",
      {
        role: "region",
        "aria-label": this.isTerminal ? "Terminal input" : "Task input",
        class: "part part-input",
      },
      h("div", { class: "input-row" }, field, this.#send, this.#close),
      h("div", { class: "input-state" }, this.#state, this.#takeOver),
    );
    this.#writer.open();
  }

  focus() {
    this.#field.focus();
  }

  /** @param {boolean} isLive */
  update(isLive) {
    const { isClosed, isHeld, failure, offset, waiting } = this.#writer;
    const isOpen = isLive && !isClosed && !isHeld;
    const { small, usual } = PLACEHOLDERS[this.isTerminal ? "keys" : "line"];
    setAttribute(this.#field, "placeholder", SMALL.matches ? small : usual);
    this.#field.disabled = !isOpen;
    this.#send.disabled = !isOpen;
    this.#close.disabled = !isOpen;
    this.#takeOver.hidden = !isHeld || !isLive;
    setText(this.#state, this.#text({ isLive, isClosed, isHeld, failure, offset, waiting }));
  }

  /** @param {{isLive: boolean, isClosed: boolean, isHeld: boolean, failure: string, offset: number | undefined, waiting: number}} state */
  #text({ isLive, isClosed, isHeld, failure, offset, waiting }) {
    if (!isLive) return "The task is finished.";
    if (isClosed) return "The input is closed.";
    if (isHeld) return "Another writer has the input.";
    const given = offset === undefined ? "" : `${count(offset)} bytes given`;
    return [failure || given, waiting && `${size(waiting)} waiting`].filter(Boolean).join(", ");
  }

  /** @param {KeyboardEvent} event */
  #lineKey(event) {
    event.stopPropagation();
    if (event.key === "Escape") this.onLeave();
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    this.#sendLine();
  }

  #sendLine() {
    this.#write(`${this.#field.value}\n`);
    this.#field.value = "";
    this.#field.focus();
  }

  #listenForKeys() {
    const field = this.#field;
    field.dataset["keys"] = "";
    field.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Escape" && event.shiftKey) this.onLeave();
      const text = keyText(event);
      if (!text || event.isComposing) return;
      event.preventDefault();
      this.#write(text);
    });
    field.addEventListener("beforeinput", (event) => {
      if (event.isComposing) return;
      event.preventDefault();
      if (event.inputType === "insertLineBreak") this.#write("\r");
      else if (event.inputType === "deleteContentBackward") this.#write("\x7f");
      else this.#write(event.data ?? event.dataTransfer?.getData("text/plain") ?? "");
    });
    field.addEventListener("compositionend", () => {
      this.#write(field.value);
      field.value = "";
    });
  }

  /** @param {string} text */
  #write(text) {
    if (text) this.#writer.write(new TextEncoder().encode(text));
  }
}
