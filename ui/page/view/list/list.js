// The list of live or of finished tasks.

import { CallError } from "../../connect/error.js";
import { Finished } from "../../model/finished.js";
import { matcher } from "../../model/filter.js";
import { fragment } from "../../model/route.js";
import { arrange } from "../../model/tree.js";
import { FINISHED, isFinished } from "../../text/task.js";
import { count, counted } from "../../text/units.js";
import { h, setAttribute, setText, takesText } from "../dom.js";
import { icon } from "../icons.js";
import { Rows } from "../rows.js";
import { cancelTask } from "../task/actions.js";
import { SessionRowView, TaskRowView, rowId } from "./row.js";

/** @import { Happened } from "../../model/tasks.js" */
/** @import { Row, Sort } from "../../model/tree.js" */
/** @import { App } from "../app.js" */
/** @import { RowContext } from "./row.js" */

/** The least time between two arrangements of the rows, in milliseconds. */
const ARRANGE = 100;
const PAGE = 200;
/** The time after a failed read, in milliseconds. */
const AGAIN = 1_000;

const COLUMNS = {
  live: ["State", "Task", "Activity", "Age", "CPU", "Memory", "Ports", "Id"],
  finished: ["State", "Task", "End", "Duration", "Ended", "Output", "Session", "Id"],
};

/** @type {Record<"live" | "finished", Partial<Record<Sort, string>>>} The orders to choose from; the first is the usual one */
const ORDERS = {
  live: { session: "By session", newest: "Newest first", oldest: "Oldest first" },
  finished: {
    "last-ended": "Last ended first",
    "first-ended": "First ended first",
    session: "By session",
  },
};

export class ListView {
  title;
  /** @type {Row[]} */
  #rows = [];
  #arranged = { key: "", at: 0 };
  #selected = "";
  #position = 0;
  /** @type {Sort} */
  #sort;
  #finished = new Finished();
  #isLoading = false;
  /** The time of the next read at the earliest. */
  #nextRead = 0;
  /** @type {RowContext | undefined} */
  #context;
  #count = h("span", { class: "muted list-count" });
  #search = h("input", {
    type: "search",
    "aria-label": "Filter tasks",
    placeholder: "Filter tasks",
    spellcheck: "false",
    autocomplete: "off",
    input: () => this.app.changed(),
  });
  #order = h("select", { "aria-label": "Order", change: () => this.#setOrder() });
  #empty = h("p", { class: "empty" });
  #body = h("div", { role: "rowgroup", class: "rows" });
  #grid;
  /** @type {Rows<Row>} */
  #list;
  element;

  /**
   * @param {App} app
   * @param {"live" | "finished"} kind
   */
  constructor(app, kind) {
    this.app = app;
    this.kind = kind;
    this.title = kind === "live" ? "Live tasks" : "Finished tasks";
    this.#sort = kind === "live" ? "session" : "last-ended";
    this.#order.append(
      ...Object.entries(ORDERS[kind]).map(([value, text]) => h("option", { value }, text)),
    );
    const head = COLUMNS[kind].map((name) =>
      h("div", { role: "columnheader", class: "cell" }, name),
    );
    this.#grid = h(
      "div",
      {
        role: "treegrid",
        class: `grid grid-${kind}`,
        tabindex: "0",
        "aria-label": this.title,
        "aria-colcount": head.length,
        scroll: () => this.app.changed(),
        click: (/** @type {MouseEvent} */ event) => this.#click(event),
      },
      h(
        "div",
        { role: "rowgroup", class: "grid-head" },
        h("div", { role: "row", class: "row", "aria-rowindex": 1 }, ...head),
      ),
      this.#body,
    );
    this.#list = new Rows(this.#grid, this.#body, {
      key: (row) => row.key,
      create: (row) => this.#create(row),
    });
    this.element = h(
      "section",
      { class: "list" },
      h(
        "div",
        { class: "toolbar" },
        h("h1", {}, this.title),
        this.#count,
        h("span", { class: "search" }, icon("search"), this.#search),
        this.#order,
      ),
      this.#grid,
      this.#empty,
    );
  }

  /** The live tasks in view that have processes. */
  get inView() {
    return this.#rows
      .slice(this.#list.first, this.#list.last)
      .flatMap((row) => (row.kind === "task" ? [this.#task(row.key) ?? row.task] : []))
      .filter((task) => task.leader && !isFinished(task))
      .map((task) => task.id);
  }

  shown() {
    if (!this.#grid.contains(document.activeElement)) this.#grid.focus({ preventScroll: true });
    this.#list.resized();
    this.app.changed();
  }

  resized() {
    this.#list.resized();
  }

  /** @param {Happened} event */
  onEvent(event) {
    if (this.kind === "finished") this.#finished.apply(event);
  }

  /** The connection is new: what the list has may be older than what the stream tells. */
  onReset() {
    if (this.kind === "finished") this.#finished.reset();
  }

  onConnected() {
    this.#finished.failure = "";
  }

  /** @param {number} now */
  update(now) {
    this.#arrange();
    if (this.kind === "finished") void this.#load();
    const context = {
      now,
      selected: this.#selected,
      task: (/** @type {string} */ id) => this.#task(id),
      queuePosition: this.app.tasks.queuePosition.bind(this.app.tasks),
      samples: (/** @type {string} */ id) => this.app.sampler.samples.get(id),
    };
    this.#context = context;
    this.#list.update(this.#rows.length, (index) => this.#rows[index]);
    setAttribute(this.#grid, "aria-rowcount", this.#rows.length + 1);
    const active = this.#selected && document.getElementById(rowId(this.#selected));
    setAttribute(this.#grid, "aria-activedescendant", active ? active.id : null);
    this.#describe();
  }

  /** @param {Row} row */
  #create(row) {
    const view = row.kind === "task" ? new TaskRowView() : new SessionRowView();
    /** @type {(row: Row, index: number) => void} */
    const update = (next, index) => {
      if (!this.#context) return;
      if (view instanceof TaskRowView && next.kind === "task")
        view.update(next, index, this.#context);
      if (view instanceof SessionRowView && next.kind === "session")
        view.update(next, index, this.#context);
    };
    return {
      element: view.element,
      update,
      canShow: (/** @type {Row} */ next) => next.kind === row.kind,
    };
  }

  #source() {
    return this.kind === "live" ? this.app.tasks.live : this.#finished.tasks;
  }

  /** @param {string} id */
  #task(id) {
    return this.#source().get(id);
  }

  #arrange() {
    const query = this.#search.value;
    const version = this.kind === "live" ? this.app.tasks.version : this.#finished.version;
    // A filter looks at what may change with any event.
    const content = query && this.kind === "live" ? this.app.tasks.revision : "";
    const key = [version, this.#sort, query, content].join("\n");
    if (key === this.#arranged.key) return;
    const wait = this.#arranged.at + ARRANGE - performance.now();
    if (wait > 0) {
      setTimeout(() => this.app.changed(), wait);
      return;
    }
    this.#arranged = { key, at: performance.now() };
    const matches = matcher(query);
    const tasks = this.#source().values();
    this.#rows = arrange(query ? [...tasks].filter(matches) : tasks, this.#sort);
    const at = this.#rows.findIndex((row) => row.key === this.#selected);
    if (at >= 0) this.#position = at;
    else this.#selectAt(this.#position);
  }

  #describe() {
    const tasks = this.#source().size;
    const shown = this.#rows.filter((row) => row.kind === "task").length;
    const all =
      this.kind === "finished" && !this.#finished.isComplete
        ? `${count(tasks)} loaded`
        : counted(tasks, "task");
    setText(this.#count, shown === tasks ? all : `${count(shown)} of ${all}`);
    const isEmpty = this.#rows.length === 0;
    this.#empty.hidden = !isEmpty;
    if (!isEmpty) return;
    const { isComplete, failure } = this.#finished;
    const isKnown = this.kind === "live" ? this.app.tasks.isComplete : isComplete;
    const none =
      this.kind === "live"
        ? "No task is live. heeler spawn -c 'sleep 60' starts one."
        : "No task has finished.";
    if (!isKnown) setText(this.#empty, failure || "Loading …");
    else setText(this.#empty, tasks ? "No task matches the filter." : none);
  }

  async #load() {
    const isNear = this.#list.last >= this.#rows.length - 20 || this.#search.value !== "";
    if (
      this.#isLoading ||
      this.#finished.isOver ||
      !isNear ||
      performance.now() < this.#nextRead ||
      this.app.connection.state !== "connected"
    )
      return;
    this.#isLoading = true;
    const read = this.#finished.read();
    try {
      const page = await this.app.client.call("List", {
        filter: { states: FINISHED },
        includeFinishedForeground: true,
        pageSize: PAGE,
        pageToken: read.token,
      });
      this.#finished.add(page, read);
    } catch (error) {
      this.#notListed(CallError.of(error));
    }
    this.#isLoading = false;
    this.app.changed();
  }

  /** @param {CallError} error */
  #notListed(error) {
    this.#nextRead = performance.now() + AGAIN;
    if (error.is("PAGE_TOKEN_MISMATCH")) this.#finished.reset();
    else if (!error.isPassing) {
      this.#finished.failure = `The finished tasks cannot be listed: ${error.message}`;
      this.app.messages.fail(this.#finished.failure);
    }
  }

  #setOrder() {
    this.#sort = /** @type {Sort} */ (this.#order.value);
    this.app.changed();
  }

  /** @param {MouseEvent} event */
  #click(event) {
    if (!(event.target instanceof Element) || event.metaKey || event.ctrlKey || event.shiftKey)
      return;
    const row = event.target.closest("[role=row]");
    const at = this.#rows.findIndex((one) => rowId(one.key) === row?.id);
    if (at < 0) return;
    event.preventDefault();
    this.#selectAt(at);
    this.#open();
  }

  /**
   * Selects a row, or the next one that is a task.
   * @param {number} index
   * @param {1 | -1} [direction]
   */
  #selectAt(index, direction = 1) {
    const last = this.#rows.length - 1;
    let at = Math.max(0, Math.min(index, last));
    if (this.#rows[at]?.kind === "session") at += at === 0 ? 1 : direction;
    this.#position = Math.min(at, Math.max(0, last));
    this.#selected = this.#rows[this.#position]?.key ?? "";
    this.app.changed();
  }

  #open() {
    const row = this.#rows[this.#position];
    if (row?.kind === "task") this.app.open(fragment("task", row.key));
  }

  /** @param {KeyboardEvent} event @returns {boolean} True if the key is used */
  key(event) {
    if (event.target === this.#search) return this.#searchKey(event);
    if (takesText(event.target)) return false;
    const steps = {
      j: 1,
      ArrowDown: 1,
      k: -1,
      ArrowUp: -1,
      PageDown: this.#list.page,
      PageUp: -this.#list.page,
    };
    const step = steps[/** @type {keyof typeof steps} */ (event.key)];
    if (step) this.#move(this.#position + step);
    else if (event.key === "g" || event.key === "Home") this.#move(0);
    else if (event.key === "G" || event.key === "End") this.#move(Infinity);
    else if (event.key === "Enter") this.#open();
    else if (event.key === "/") this.#search.focus();
    else if (event.key === "Escape" && this.#search.value) this.#clear();
    else if (event.key === "x") this.#cancel();
    else return false;
    return true;
  }

  /** @param {KeyboardEvent} event */
  #searchKey(event) {
    if (event.key === "Escape") this.#clear();
    else if (event.key !== "Enter" && event.key !== "ArrowDown") return false;
    this.#grid.focus();
    return true;
  }

  #clear() {
    this.#search.value = "";
    this.app.changed();
  }

  /** @param {number} index */
  #move(index) {
    this.#selectAt(index, index < this.#position ? -1 : 1);
    this.#list.reveal(this.#position < 2 ? 0 : this.#position);
  }

  #cancel() {
    const row = this.#rows[this.#position];
    const task = row?.kind === "task" ? this.#task(row.key) : undefined;
    if (task) void cancelTask(this.app, task, "Cancel");
  }
}
