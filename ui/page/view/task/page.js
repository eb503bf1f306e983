// The page of a task.

import { past } from "../../live/watch.js";
import { Inspector } from "../../live/inspector.js";
import { remember } from "../../model/history.js";
import { Latest } from "../../model/latest.js";
import { fragment } from "../../model/route.js";
import { elapsed, endingBesideState, flags, isFinished, title } from "../../text/task.js";
import { age, duration } from "../../text/units.js";
import { StateBadge, showFlags } from "../badges.js";
import { h, setAttribute, setChildren, setText, takesText } from "../dom.js";
import { icon } from "../icons.js";
import { allowed, run } from "./actions.js";
import { InputPart } from "./input.js";
import { OutputPart } from "./output.js";
import { Part, showBlocks, showPorts, showProcesses, showProgress } from "./parts.js";
import { showPatterns } from "./patterns.js";
import { ResourcesPart } from "./resources.js";
import { ScreenPart } from "./screen.js";
import { StopPart } from "./stop.js";
import { SummaryPart } from "./summary.js";
import { showTimeline } from "./timeline.js";

/** @import { BackgroundTask, InspectResponse } from "../../../types/contract.js" */
/** @import { CallError } from "../../connect/error.js" */
/** @import { Happened } from "../../model/tasks.js" */
/** @import { App } from "../app.js" */
/** @import { Action } from "./actions.js" */

/** @type {Readonly<Record<string, Action>>} */
const KEYS = { x: "Cancel", X: "Force", d: "Detach", R: "Restart", m: "Send", D: "Remove" };

export class TaskView {
  title = "Task";
  #latest = new Latest();
  /** @type {InspectResponse | undefined} */
  #inspected;
  /** Of this task, oldest first. @type {Happened[]} */
  #events = [];
  #hasPast = false;
  #failure = "";
  #closed = new AbortController();
  #heading = h("h1", {}, "");
  #state = new StateBadge();
  #flags = h("span", { class: "badges" });
  #time = h("span", { class: "muted" });
  #toolbar = h("div", { role: "toolbar", "aria-label": "Actions", class: "actions" });
  #missing = h("p", { class: "empty", hidden: true });
  #stop = new StopPart();
  #screen = new ScreenPart();
  #resources = new ResourcesPart();
  #parts = {
    progress: new Part("Progress"),
    summary: new SummaryPart(),
    ports: new Part("Ports"),
    processes: new Part("Processes"),
    blocks: new Part("Blocks"),
    patterns: new Part("Patterns"),
    timeline: new Part("Timeline"),
  };
  /** @type {InputPart | undefined} */
  #input;
  #main;
  element;

  /**
   * @param {App} app
   * @param {string} id
   */
  constructor(app, id) {
    this.app = app;
    this.id = id;
    this.title = id;
    this.#output = new OutputPart(app, id, () => {
      if (this.#task?.spec?.terminal) this.#inspector.refresh();
    });
    this.#inspector = new Inspector(app.client, id, {
      onAnswer: (response) => this.#answered(response),
      onError: (error) => this.#failed(error),
      isLive: () => !this.#task || !isFinished(this.#task),
    });
    this.#state.element.dataset["field"] = "state";
    const { progress, summary, ports, processes, blocks, patterns, timeline } = this.#parts;
    this.#main = h(
      "div",
      { class: "task-main" },
      this.#stop.element,
      this.#screen.element,
      this.#output.element,
    );
    this.element = h(
      "article",
      { class: "task" },
      h(
        "div",
        { class: "task-head" },
        h(
          "a",
          { class: "back", href: fragment("live"), "aria-label": "Back to the tasks" },
          icon("back"),
        ),
        h(
          "div",
          { class: "task-title" },
          this.#heading,
          h("span", { class: "mono muted task-id" }, id),
        ),
        this.#toolbar,
        h("div", { class: "task-line" }, this.#state.element, this.#flags, this.#time),
      ),
      this.#missing,
      h(
        "div",
        { class: "task-body" },
        this.#main,
        h(
          "div",
          { class: "task-side", role: "region", "aria-label": "Details", tabindex: "0" },
          ...[progress, this.#resources, summary, ports, processes, blocks, patterns, timeline].map(
            (part) => part.element,
          ),
        ),
      ),
    );
  }

  get #task() {
    return this.#latest.task;
  }

  /** @type {OutputPart} */
  #output;
  /** @type {Inspector} */
  #inspector;

  close() {
    this.#closed.abort();
    this.#output.close();
    this.#inspector.close();
  }

  shown() {
    this.#output.focusLog();
  }

  rest() {
    this.#output.source.rest();
  }

  wake() {
    this.#output.source.wake();
    this.#inspector.refresh();
  }

  resized() {
    this.#output.resized();
  }

  /** @param {Happened} event */
  onEvent(event) {
    if (event.task?.id !== this.id) return;
    remember(this.#events, event);
    this.#latest.offer(event.task);
    this.#inspector.refresh();
  }

  onConnected() {
    this.#output.source.retry();
    this.#inspector.refresh();
  }

  onReset() {
    this.#latest.reset();
    this.#events = [];
    this.#hasPast = false;
    this.#inspector.refresh();
  }

  /** @param {number} now */
  update(now) {
    void this.#readPast();
    const live = this.app.tasks.live.get(this.id);
    if (live) this.#latest.offer(live);
    const task = this.#task;
    this.#missing.hidden = Boolean(task) || !this.#failure;
    setText(this.#missing, this.#failure);
    this.element.classList.toggle("task-missing", !task);
    if (!task) return;
    this.#head(task, now);
    this.#body(task);
    this.#output.update();
  }

  /**
   * @param {BackgroundTask} task
   * @param {number} now
   */
  #head(task, now) {
    setText(this.#heading, title(task));
    document.title = `${title(task)} · Heeler`;
    this.#state.update(task);
    showFlags(this.#flags, flags(task));
    const time = isFinished(task)
      ? `${endingBesideState(task)} after ${duration(elapsed(task, now) / 1000)}`.trimStart()
      : age(elapsed(task, now));
    setText(this.#time, time);
    const actions = allowed(this.app, task);
    setChildren(this.#toolbar, actions.join(), () =>
      actions.map((action) => {
        const key = Object.entries(KEYS).find(([, one]) => one === action)?.[0] ?? "";
        const style = action === "Cancel" ? "danger-quiet" : "";
        return h(
          "button",
          {
            type: "button",
            class: style,
            title: `${action} (${key})`,
            click: () => this.#task && run(this.app, action, this.#task),
          },
          action,
        );
      }),
    );
    setAttribute(this.#toolbar, "hidden", actions.length ? null : "");
  }

  /** @param {BackgroundTask} task */
  #body(task) {
    const inspected = this.#inspected;
    const { progress, summary, ports, processes, blocks, patterns, timeline } = this.#parts;
    this.#stop.update(task);
    this.#screen.update(isFinished(task) ? undefined : inspected?.screen);
    this.#resources.update(task, inspected, this.app.sampler.of(this.id));
    showProgress(progress, task);
    const place = this.app.tasks.queuePosition(task);
    const end = Math.max(
      this.#output.source.window.total,
      Number(inspected?.output?.endOffset ?? 0),
    );
    summary.update(task, { place, end, summary: inspected?.summary ?? "" });
    showPorts(ports, inspected);
    showProcesses(processes, inspected);
    showBlocks(blocks, inspected?.blocks);
    showPatterns(patterns, task, this.#events, (offset) => this.#output.show(offset));
    showTimeline(timeline, task, this.#events);
    this.#showInput(task);
  }

  /** @param {BackgroundTask} task */
  #showInput(task) {
    const takesInput = task.spec?.input ?? task.spec?.terminal;
    if (!this.#input && takesInput && !isFinished(task) && !this.app.isReadOnly) {
      this.#input = new InputPart(this.app, task, () => this.#output.focusLog());
      this.#main.append(this.#input.element);
    }
    this.#input?.update(!isFinished(task));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { find } = this.#output;
    if (event.target === find.field) {
      const isUsed = find.key(event);
      if (isUsed && event.key === "Escape") this.#output.focusLog();
      return isUsed;
    }
    if (takesText(event.target)) return false;
    const action = KEYS[event.key];
    const isSlider = event.target instanceof HTMLInputElement && event.target.type === "range";
    if (action && this.#task) run(this.app, action, this.#task);
    else if (event.key === "/") this.#output.focusSearch();
    else if (event.key === "i" && this.#input) this.#input.focus();
    else if (event.key === "Escape" && find.query) {
      find.key(event);
    } else if (event.key === "Escape") this.#leave();
    else return !isSlider && this.#output.key(event.key);
    return true;
  }

  #leave() {
    const isOver = this.#task && isFinished(this.#task);
    this.app.open(fragment(isOver ? "finished" : "live"));
  }

  /** @param {InspectResponse} response */
  #answered(response) {
    this.#inspected = response;
    this.#failure = "";
    const { task } = response;
    if (task) this.#latest.offer(task);
    if (task && !isFinished(task)) this.app.sampler.of(this.id).add(response, Date.now());
    const { source } = this.#output;
    source.gaps = (response.output?.gaps ?? []).map((chunk) => {
      const offset = Number(chunk.offset);
      return { offset, end: offset + Number(chunk.gap?.length ?? 0) };
    });
    if (response.output) source.sawEnd(Number(response.output.endOffset));
    this.app.changed();
  }

  /** @param {CallError} error */
  #failed(error) {
    const isMissing = error.is("TASK_NOT_FOUND");
    if (isMissing && this.#latest.isOld) this.#latest = new Latest();
    this.#failure = isMissing
      ? "There is no such task: it was removed, or never existed."
      : error.message;
    this.app.changed();
  }

  /** Reads the events of the task from before the page was opened, once. */
  async #readPast() {
    const { tasks, client } = this.app;
    if (this.#hasPast || tasks.revision === undefined) return;
    this.#hasPast = true;
    const until = tasks.revision;
    try {
      const range = { after: 0, until, epoch: tasks.epoch, taskId: this.id };
      const events = await past(client, range, this.#closed.signal, remember);
      for (const event of this.#events) if (event.revision > until) remember(events, event);
      this.#events = events;
    } catch {
      // The timeline is made from the task's own times.
    }
    this.app.changed();
  }
}
