// The finished tasks, as far as they were listed or have ended since.

import { isFinished } from "../text/task.js";

/** @import { BackgroundTask, ListResponse } from "../../types/contract.js" */
/** @import { Happened } from "./tasks.js" */

/** The most tasks that are kept. List others with `heeler ps --all`. */
const MOST = 20_000;

/** A page that is being read. @typedef {{token: string, generation: number}} Read */

export class Finished {
  /** @type {Map<string, BackgroundTask>} */
  tasks = new Map();
  version = 0;
  /** The refusal of the latest page. */
  failure = "";
  /** The token of the next page. Absent: no page was read yet. @type {string | undefined} */
  #next;
  /** Counts the resets: a page from before one does not belong to the list. */
  #generation = 0;
  /** The tasks that were removed since the latest page was asked for. @type {Set<string>} */
  #removed = new Set();

  /** True if every finished task is in the list. */
  get isComplete() {
    return this.#next === "";
  }

  /** True if no further page is to be read. */
  get isOver() {
    return this.isComplete || this.tasks.size >= MOST || this.failure !== "";
  }

  /** Begins to read the next page. @returns {Read} */
  read() {
    this.#removed.clear();
    return { token: this.#next ?? "", generation: this.#generation };
  }

  /**
   * @param {ListResponse} page
   * @param {Read} read
   */
  add(page, read) {
    if (read.generation !== this.#generation) return;
    for (const task of page.tasks) if (!this.#removed.has(task.id)) this.tasks.set(task.id, task);
    this.#next = page.nextPageToken;
    this.version += 1;
  }

  /** @param {Happened} event */
  apply({ type, task }) {
    if (!task) return;
    if (type === "TASK_EVENT_TYPE_REMOVED") {
      this.#removed.add(task.id);
      if (this.tasks.delete(task.id)) this.version += 1;
    } else if (isFinished(task) && this.tasks.size < MOST) {
      this.tasks.set(task.id, task);
      this.version += 1;
    }
  }

  /** Forgets all tasks, to read them anew. */
  reset() {
    this.tasks.clear();
    this.failure = "";
    this.#next = undefined;
    this.#generation += 1;
    this.version += 1;
  }
}
