// The queues with their slots.

import { CallError } from "../connect/error.js";
import { line } from "../text/plain.js";
import { h, setAttribute, setChildren, setText } from "./dom.js";
import { icon } from "./icons.js";

/** @import { Queue } from "../../types/contract.js" */
/** @import { Happened } from "../model/tasks.js" */
/** @import { App } from "./app.js" */
/** @typedef {{slots?: number, paused?: boolean}} QueueChange */

/** The least time between two reads, in milliseconds. */
const PAUSE = 500;

export class QueuesView {
  title = "Queues";
  /** @type {Queue[] | undefined} */
  #queues;
  #failure = "";
  #timer = 0;
  #isBusy = false;
  #isOutdated = false;
  #isShown = false;
  /** @type {Map<string, QueueRow>} */
  #rows = new Map();
  #body = h("tbody");
  #table = h(
    "table",
    { class: "table", "aria-label": "Queues" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ...["Queue", "Running", "Waiting", "Slots", "State", "Change"].map((name) =>
          h("th", { scope: "col" }, name),
        ),
      ),
    ),
    this.#body,
  );
  #empty = h("p", { class: "empty" });
  element = h(
    "section",
    { class: "sheet" },
    h("h1", {}, "Queues"),
    h(
      "p",
      { class: "muted" },
      "Tasks of a queue wait for one of its slots. A paused queue admits no further task.",
    ),
    this.#table,
    this.#empty,
  );

  /** @param {App} app */
  constructor(app) {
    this.app = app;
  }

  shown() {
    this.#isShown = true;
    this.#plan(0);
  }

  close() {
    this.#isShown = false;
    clearTimeout(this.#timer);
    this.#timer = 0;
  }

  /** @param {Happened} event */
  onEvent(event) {
    if (event.task?.spec?.queue) this.#plan(PAUSE);
  }

  onConnected() {
    this.#plan(0);
  }

  update() {
    if (!this.#queues && this.app.connection.state === "connected") this.#plan(0);
  }

  /** @param {number} delay */
  #plan(delay) {
    // The answer to come may be older than the change.
    if (this.#isBusy) this.#isOutdated = true;
    if (!this.#isShown || this.#timer || this.#isBusy) return;
    this.#timer = window.setTimeout(() => void this.#read(), delay);
  }

  async #read() {
    this.#timer = 0;
    this.#isBusy = true;
    this.#isOutdated = false;
    try {
      this.#queues = (await this.app.client.call("ListQueues", {})).queues;
      this.#failure = "";
    } catch (error) {
      this.#failure = CallError.of(error).message;
      this.#queues ??= [];
    }
    this.#isBusy = false;
    this.#show();
    if (this.#hasChanged()) this.#plan(PAUSE);
  }

  #hasChanged() {
    return this.#isOutdated;
  }

  /** Shows the queues in rows that stay: the focus may be in one of them. */
  #show() {
    const queues = this.#queues ?? [];
    this.#table.hidden = queues.length === 0;
    this.#empty.hidden = queues.length > 0;
    this.#empty.textContent =
      this.#failure || "No queue has tasks or settings. heeler spawn --queue NAME uses one.";
    const names = new Set(queues.map((queue) => queue.name));
    for (const [name, row] of this.#rows) {
      if (names.has(name)) continue;
      row.element.remove();
      this.#rows.delete(name);
    }
    let next = this.#body.firstElementChild;
    for (const queue of queues) {
      const row = this.#row(queue);
      if (row.element === next) next = next.nextElementSibling;
      else this.#body.insertBefore(row.element, next);
    }
  }

  /** @param {Queue} queue */
  #row(queue) {
    let row = this.#rows.get(queue.name);
    if (row) row.update(queue);
    else {
      const change = (/** @type {QueueChange} */ change) => this.#update(queue.name, change);
      this.#rows.set(queue.name, (row = new QueueRow(queue, this.app.isReadOnly, change)));
    }
    return row;
  }

  /**
   * @param {string} name
   * @param {QueueChange} change
   */
  async #update(name, change) {
    try {
      await this.app.client.call("UpdateQueue", { name, ...change });
      return true;
    } catch (error) {
      this.app.messages.fail(
        `The queue ${line(name)} is unchanged: ${CallError.of(error).message}`,
      );
      return false;
    } finally {
      this.#plan(0);
    }
  }
}

class QueueRow {
  #running = h("span");
  #bar = h("span", { class: "slots", "aria-hidden": "true" });
  #waiting = h("td");
  #state = h("td");
  #slots;
  #toggle = h("button", { type: "button", click: () => this.#pause() });
  element;

  /**
   * @param {Queue} queue
   * @param {boolean} isFixed
   * @param {(change: QueueChange) => Promise<boolean>} change Returns true if it is made
   */
  constructor(queue, isFixed, change) {
    this.queue = queue;
    this.change = change;
    const name = line(queue.name);
    this.#slots = h("input", {
      type: "number",
      min: 1,
      max: 10_000,
      "aria-label": `Slots of ${name}`,
      readonly: isFixed,
      change: () => void this.#setSlots(),
      blur: () => this.#showSlots(),
    });
    this.element = h(
      "tr",
      { "data-queue": queue.name },
      h("th", { scope: "row" }, name),
      h("td", {}, this.#running, this.#bar),
      this.#waiting,
      h("td", {}, this.#slots),
      this.#state,
      h("td", {}, isFixed ? "" : this.#toggle),
    );
    this.update(queue);
  }

  /** @param {Queue} queue */
  update(queue) {
    const { running, waiting, slots, paused } = queue;
    this.queue = queue;
    setText(this.#running, String(running));
    setText(this.#waiting, String(waiting));
    setChildren(this.#bar, `${running} ${slots}`, () =>
      Array.from({ length: Math.min(slots, 20) }, (_, at) =>
        h("span", { class: at < running ? "slot slot-used" : "slot" }),
      ),
    );
    // A field that is being edited stays.
    if (document.activeElement !== this.#slots) this.#showSlots();
    setChildren(this.#state, String(paused), () => [
      paused ? h("span", { class: "badge", "data-flag": "stale" }, "Paused") : "Open",
    ]);
    const toggle = paused ? "Resume" : "Pause";
    setAttribute(this.#toggle, "aria-label", `${toggle} ${line(queue.name)}`);
    setChildren(this.#toggle, toggle, () => [icon(paused ? "running" : "pause"), toggle]);
  }

  #showSlots() {
    this.#slots.value = String(this.queue.slots);
  }

  #pause() {
    void this.change({ paused: !this.queue.paused });
  }

  async #setSlots() {
    const before = this.queue;
    const slots = Number(this.#slots.value);
    // Before it is read again, the field may lose the focus.
    this.queue = { ...before, slots };
    if (await this.change({ slots })) return;
    this.queue = before;
    this.#showSlots();
  }
}
