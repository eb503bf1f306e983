// The events, newest first.

import { CallError } from "../connect/error.js";
import { past } from "../live/watch.js";
import { fragment } from "../model/route.js";
import { eventDetail, typeKey, typeText } from "../text/event.js";
import { title } from "../text/task.js";
import { clock, count, counted } from "../text/units.js";
import { h, setAttribute, setText, takesText } from "./dom.js";
import { icon } from "./icons.js";
import { Rows } from "./rows.js";

/** @import { Happened } from "../model/tasks.js" */
/** @import { App } from "./app.js" */

/** The number of revisions before the page was opened that are read. */
const EARLIER = 500;
/** The least time between two selections of the events, in milliseconds. */
const ARRANGE = 100;
const COLUMNS = ["Revision", "Time", "Event", "Task", "Detail", "Session"];

export class EventsView {
  title = "Events";
  /** @type {Happened[]} */
  #shown = [];
  /** The latest revision that is shown while the list is scrolled down. */
  #frozen = 0;
  #isRead = false;
  #arranged = { key: "", at: 0 };
  #search = h("input", {
    type: "search",
    "aria-label": "Filter events",
    placeholder: "Filter events",
    spellcheck: "false",
    autocomplete: "off",
    input: () => this.app.changed(),
  });
  #count = h("span", { class: "muted list-count" });
  #newer = h("button", {
    class: "newer",
    type: "button",
    hidden: true,
    click: () => this.#toTop(),
  });
  #body = h("div", { role: "rowgroup", class: "rows" });
  #table = h(
    "div",
    {
      role: "table",
      class: "grid grid-events",
      tabindex: "0",
      "aria-label": "Events",
      scroll: () => this.app.changed(),
    },
    h(
      "div",
      { role: "rowgroup", class: "grid-head" },
      h(
        "div",
        { role: "row", class: "row" },
        ...COLUMNS.map((name) => h("div", { role: "columnheader", class: "cell" }, name)),
      ),
    ),
    this.#body,
  );
  /** @type {Rows<Happened>} */
  #rows = new Rows(this.#table, this.#body, {
    key: (event) => String(event.revision),
    create: eventRow,
  });
  element = h(
    "section",
    { class: "list" },
    h(
      "div",
      { class: "toolbar" },
      h("h1", {}, "Events"),
      this.#count,
      h("span", { class: "search" }, icon("search"), this.#search),
    ),
    this.#table,
    this.#newer,
  );

  /** @param {App} app */
  constructor(app) {
    this.app = app;
  }

  shown() {
    this.#table.focus({ preventScroll: true });
  }

  onReset() {
    this.#isRead = false;
    this.#frozen = 0;
  }

  resized() {
    this.#rows.resized();
  }

  update() {
    void this.#read();
    this.#arrange();
    this.#rows.update(this.#shown.length, (index) => this.#shown[index]);
  }

  /** Selects the events to show, some times a second. */
  #arrange() {
    const { events } = this.app.tasks;
    const query = this.#search.value.toLowerCase();
    const isTop = this.#table.scrollTop < this.#rows.height;
    const latest = events.at(-1)?.revision ?? 0;
    const key = [latest, events.length, query, isTop].join(" ");
    if (key === this.#arranged.key) return;
    const wait = this.#arranged.at + ARRANGE - performance.now();
    if (wait > 0) {
      setTimeout(() => this.app.changed(), wait);
      return;
    }
    this.#arranged = { key, at: performance.now() };
    if (isTop || !this.#frozen) this.#frozen = latest;
    this.#shown = events
      .filter((event) => event.revision <= this.#frozen && matches(event, query))
      .reverse();
    this.#rows.mark(this.#shown.length + 1);
    setText(this.#count, `${count(this.#shown.length)} of the latest`);
    const newer = events.filter((event) => event.revision > this.#frozen).length;
    this.#newer.hidden = newer === 0;
    setText(this.#newer, counted(newer, "new event"));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.target === this.#search) {
      if (event.key !== "Escape") return false;
      this.#search.value = "";
      this.#table.focus();
      this.app.changed();
      return true;
    }
    if (takesText(event.target)) return false;
    const steps = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };
    const step = steps[/** @type {keyof typeof steps} */ (event.key)];
    if (step) this.#table.scrollTop += step * this.#rows.height;
    else if (event.key === "/") this.#search.focus();
    else if (event.key === "g") this.#toTop();
    else return false;
    return true;
  }

  #toTop() {
    this.#table.scrollTop = 0;
    this.app.changed();
  }

  /** Reads the events from before the page was opened, once. */
  async #read() {
    const { tasks, client } = this.app;
    if (this.#isRead || tasks.revision === undefined) return;
    this.#isRead = true;
    const until = tasks.events[0] ? tasks.events[0].revision - 1 : tasks.revision;
    const after = Math.max(0, until - EARLIER);
    if (after >= until) return;
    try {
      const range = { after, until, epoch: tasks.epoch };
      tasks.addEarlier(await past(client, range, AbortSignal.timeout(20_000)));
    } catch (error) {
      this.app.messages.fail(`Earlier events cannot be read: ${CallError.of(error).message}`);
    }
    this.app.changed();
  }
}

/**
 * @param {Happened} event
 * @param {string} query
 */
function matches(event, query) {
  if (!query) return true;
  const text = [
    typeText(event.type),
    event.task?.id,
    event.task && title(event.task),
    event.session,
    eventDetail(event),
  ];
  return text.join("\n").toLowerCase().includes(query);
}

/** @param {Happened} event */
function eventRow(event) {
  const { task } = event;
  const cells = [
    h("span", { class: "mono muted" }, count(event.revision)),
    h("span", { class: "mono" }, clock(event.at)),
    h("span", { class: "event-type", "data-type": typeKey(event.type) }, typeText(event.type)),
    task ? h("a", { href: fragment("task", task.id) }, title(task)) : "",
    h("span", { class: "muted" }, eventDetail(event)),
    h("span", { class: "muted" }, event.session),
  ];
  const element = h(
    "div",
    {
      role: "row",
      class: "row",
      "data-revision": event.revision,
      "data-type": typeKey(event.type),
    },
    ...cells.map((content) => h("div", { role: "cell", class: "cell" }, content)),
  );
  /** @type {(row: Happened, index: number) => void} */
  const update = (_row, index) => setAttribute(element, "aria-rowindex", index + 2);
  return { element, update };
}
