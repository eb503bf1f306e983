// A row of the list: a task or a session.

import { fragment } from "../../model/route.js";
import { line } from "../../text/plain.js";
import {
  command,
  elapsed,
  endingBesideState,
  flags,
  isFinished,
  kind,
  stateKey,
  title,
} from "../../text/task.js";
import { age, clock, counted, duration, size } from "../../text/units.js";
import { StateBadge, showFlags } from "../badges.js";
import { h, setAttribute, setText } from "../dom.js";
import { icon } from "../icons.js";
import { Sparkline } from "../sparkline.js";

/** @import { BackgroundTask } from "../../../types/contract.js" */
/** @import { Samples } from "../../model/samples.js" */
/** @import { SessionRow, TaskRow } from "../../model/tree.js" */

/**
 * @typedef {object} RowContext
 * @property {number} now
 * @property {string} selected
 * @property {(id: string) => BackgroundTask | undefined} task The present version
 * @property {(task: BackgroundTask) => number} queuePosition
 * @property {(id: string) => Samples | undefined} samples
 */

/** Values of a sparkline. */
const SHOWN = 20;

/** The id of a row's element. @param {string} key */
export const rowId = (key) => `row-${key.replace(/[^\w-]/g, "_")}`;

/** @param {string} style @param {...(Node | string)} children */
const cell = (style, ...children) =>
  h("div", { role: "gridcell", class: `cell ${style}` }, ...children);

/** The place in a queue, or the activity. @param {BackgroundTask} task @param {RowContext} context */
function activity(task, context) {
  if (isFinished(task)) return endingBesideState(task);
  const place = context.queuePosition(task);
  if (place) return `#${place} in ${line(task.spec?.queue ?? "")}`;
  if (task.state === "TASK_STATE_QUEUED")
    return `waits for key ${line(task.spec?.exclusive?.key ?? "")}`;
  const percent = task.progress?.percent;
  const intent = line(task.progress?.intent ?? "").slice(0, 200);
  return [percent === undefined ? "" : `${percent}%`, intent].filter(Boolean).join(" ");
}

export class TaskRowView {
  #state = new StateBadge();
  #title = h("a", { class: "row-title", tabindex: "-1" });
  #command = h("span", { class: "row-command" });
  #flags = h("span", { class: "badges" });
  #activity = h("span", { class: "row-activity" });
  #age = cell("cell-age");
  #cpu = new Sparkline();
  #cpuText = h("span");
  #memory = new Sparkline();
  #memoryText = h("span");
  #ports = cell("cell-ports");
  #id = cell("cell-id");
  #indent = h("span", { class: "indent", "aria-hidden": "true" });
  element;

  constructor() {
    this.element = h(
      "div",
      { role: "row", class: "row" },
      cell("cell-state", this.#state.element),
      cell("cell-task", this.#indent, this.#title, this.#command),
      cell("cell-note", this.#flags, this.#activity),
      this.#age,
      cell("cell-cpu", this.#cpu.element, this.#cpuText),
      cell("cell-memory", this.#memory.element, this.#memoryText),
      this.#ports,
      this.#id,
    );
  }

  /**
   * @param {TaskRow} row
   * @param {number} index
   * @param {RowContext} context
   */
  update(row, index, context) {
    const task = context.task(row.task.id) ?? row.task;
    const { element } = this;
    setAttribute(element, "id", rowId(row.key));
    setAttribute(element, "data-task-id", task.id);
    setAttribute(this.#title, "href", fragment("task", task.id));
    setText(this.#id, task.id);
    setAttribute(element, "data-state", stateKey(task));
    setAttribute(element, "aria-level", row.level);
    setAttribute(element, "aria-rowindex", index + 2);
    setAttribute(element, "aria-selected", context.selected === row.key ? "true" : "false");
    this.#state.update(task);
    const text = title(task);
    setText(this.#title, text);
    const full = task.spec?.kind === "TASK_KIND_SHELL" ? command(task).slice(0, 200) : kind(task);
    setText(this.#command, full === text ? "" : full);
    showFlags(this.#flags, flags(task));
    setText(this.#activity, activity(task, context));
    setText(
      this.#age,
      isFinished(task) ? duration(elapsed(task, 0) / 1000) : age(elapsed(task, context.now)),
    );
    this.#indent.style.width = `${Math.min(row.level - 1, 8) * 16}px`;
    setAttribute(this.#indent, "data-nested", row.level > 2 ? "" : null);
    if (isFinished(task)) this.#finished(task, context.now);
    else this.#live(context.samples(task.id));
  }

  /** @param {BackgroundTask} task @param {number} now */
  #finished(task, now) {
    setText(this.#cpuText, clock(task.endTime, now));
    setText(this.#memoryText, size(Number(task.outputBytes)));
    setText(this.#ports, line(task.spec?.sessionId ?? ""));
  }

  /** @param {Samples | undefined} samples */
  #live(samples) {
    const cpu = samples?.cpu.at(-1);
    const memory = samples?.memory.at(-1);
    this.#cpu.update(samples?.cpu.slice(-SHOWN) ?? [], 100, SHOWN);
    this.#memory.update(samples?.memory.slice(-SHOWN) ?? [], 1 << 20, SHOWN);
    setText(this.#cpuText, cpu === undefined ? "" : `${Math.round(cpu)}%`);
    setText(this.#memoryText, memory ? size(memory) : "");
    setText(this.#ports, (samples?.ports ?? []).map((port) => `:${port}`).join(" "));
  }
}

export class SessionRowView {
  #name = h("span", { class: "session-name" });
  #count = h("span", { class: "muted" });
  element;

  constructor() {
    this.element = h(
      "div",
      {
        role: "row",
        class: "row row-session",
        "aria-level": 1,
      },
      h(
        "div",
        { role: "gridcell", class: "cell cell-session", "aria-colspan": 8 },
        icon("down"),
        this.#name,
        this.#count,
      ),
    );
  }

  /**
   * @param {SessionRow} row
   * @param {number} index
   * @param {RowContext} context
   */
  update(row, index, context) {
    setAttribute(this.element, "id", rowId(row.key));
    setAttribute(this.element, "data-session", row.session);
    setText(this.#name, line(row.session) || "No session");
    setAttribute(this.element, "aria-rowindex", index + 2);
    setAttribute(this.element, "aria-selected", context.selected === row.key ? "true" : "false");
    setText(this.#count, counted(row.count, "task"));
  }
}
