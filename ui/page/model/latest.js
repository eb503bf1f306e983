// The latest version of one task, of those that events and answers tell in any order.

/** @import { BackgroundTask } from "../../types/contract.js" */

export class Latest {
  /** @type {BackgroundTask | undefined} */
  task;
  #revision = 0;

  /** True while nothing is known since the latest reset. */
  get isOld() {
    return this.#revision === 0;
  }

  /** Takes a version, unless a later one is known. @param {BackgroundTask} task */
  offer(task) {
    const revision = Number(task.revision);
    if (revision < this.#revision) return;
    this.task = task;
    this.#revision = revision;
  }

  /** Takes the next version in any case: the revisions may have begun anew. */
  reset() {
    this.#revision = 0;
  }
}
