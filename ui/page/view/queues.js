// The queues with their slots.

import { CallError } from "../connect/error.js";
import { line } from "../text/plain.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";

/** @import { Queue } from "../../types/contract.js" */
/** @import { Happened } from "../model/tasks.js" */
/** @import { App } from "./app.js" */

/** The least time between two reads, in milliseconds. */
const PAUSE = 500;

export class QueuesView {
  title = "Queues";
  /** @type {Queue[] | undefined} */
  #queues;
  #failure = "";
  #timer = 0;
  #isShown = false;
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

  update() {
    if (!this.#queues && this.app.connection.state === "connected") this.#plan(0);
  }

  /** @param {number} delay */
  #plan(delay) {
    if (!this.#isShown || this.#timer) return;
    this.#timer = window.setTimeout(() => void this.#read(), delay);
  }

  async #read() {
    try {
      this.#queues = (await this.app.client.call("ListQueues", {})).queues;
      this.#failure = "";
    } catch (error) {
      this.#failure = CallError.of(error).message;
      this.#queues ??= [];
    }
    this.#timer = 0;
    this.#show();
  }

  #show() {
    const queues = this.#queues ?? [];
    this.#table.hidden = queues.length === 0;
    this.#empty.hidden = queues.length > 0;
    this.#empty.textContent =
      this.#failure || "No queue has tasks or settings. heeler spawn --queue NAME uses one.";
    // A field that is being edited stays.
    const active = document.activeElement;
    if (active instanceof HTMLInputElement && this.#body.contains(active)) return;
    this.#body.replaceChildren(...queues.map((queue) => this.#row(queue)));
  }

  /** @param {Queue} queue */
  #row(queue) {
    const name = line(queue.name);
    const isFixed = this.app.isReadOnly;
    const slots = h("input", {
      type: "number",
      min: 1,
      max: 10_000,
      value: queue.slots,
      "aria-label": `Slots of ${name}`,
      readonly: isFixed,
      change: () => void this.#update(queue, { slots: Number(slots.value) }),
    });
    const toggle = queue.paused ? "Resume" : "Pause";
    const button = h(
      "button",
      {
        type: "button",
        "aria-label": `${toggle} ${name}`,
        click: () => void this.#update(queue, { paused: !queue.paused }),
      },
      icon(queue.paused ? "running" : "pause"),
      toggle,
    );
    const bar = h("span", { class: "slots", "aria-hidden": "true" });
    for (let at = 0; at < Math.min(queue.slots, 20); at += 1) {
      bar.append(h("span", { class: at < queue.running ? "slot slot-used" : "slot" }));
    }
    return h(
      "tr",
      { "data-queue": queue.name },
      h("th", { scope: "row" }, name),
      h("td", {}, String(queue.running), bar),
      h("td", {}, String(queue.waiting)),
      h("td", {}, slots),
      h(
        "td",
        {},
        queue.paused ? h("span", { class: "badge", "data-flag": "stale" }, "Paused") : "Open",
      ),
      h("td", {}, isFixed ? "" : button),
    );
  }

  /**
   * @param {Queue} queue
   * @param {{slots?: number, paused?: boolean}} change
   */
  async #update(queue, change) {
    try {
      await this.app.client.call("UpdateQueue", { name: queue.name, ...change });
    } catch (error) {
      this.app.messages.fail(
        `The queue ${line(queue.name)} is unchanged: ${CallError.of(error).message}`,
      );
    }
    if (
      document.activeElement instanceof HTMLElement &&
      this.#body.contains(document.activeElement)
    ) {
      document.activeElement.blur();
    }
    this.#plan(0);
  }
}
