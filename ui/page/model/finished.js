// The finished tasks, as far as they were listed or have ended since.

import { isFinished } from "../text/task.js";

/** @import { BackgroundTask, ListResponse } from "../../types/contract.js" */
/** @import { Happened } from "./tasks.js" */

/** The most tasks that are kept; further ones are found by the command line. */
const MOST = 20_000;

export class Finished {
  /** @type {Map<string, BackgroundTask>} */
  tasks = new Map();
  /** The token of the next page. Absent: no page was read yet. @type {string | undefined} */
  next;
  version = 0;

  get isComplete() {
    return this.next === "" || this.tasks.size >= MOST;
  }

  /** @param {ListResponse} page */
  add(page) {
    for (const task of page.tasks) this.tasks.set(task.id, task);
    this.next = page.nextPageToken;
    this.version += 1;
  }

  /** @param {Happened} event */
  apply({ type, task }) {
    if (!task) return;
    if (type === "TASK_EVENT_TYPE_REMOVED") {
      if (this.tasks.delete(task.id)) this.version += 1;
    } else if (isFinished(task) && this.tasks.size < MOST) {
      this.tasks.set(task.id, task);
      this.version += 1;
    }
  }

  /** Forgets all tasks, to read them anew. */
  reset() {
    this.tasks.clear();
    this.next = undefined;
    this.version += 1;
  }
}
