// Stops that the page has asked for: their ends arrive as events. A call that waits for one would hold a connection.

import { Delays, pause } from "../connect/delays.js";
import { CallError } from "../connect/error.js";
import { isFinished } from "../text/task.js";

/** @import { BackgroundTask } from "../../types/contract.js" */
/** @import { Client } from "../connect/client.js" */
/** @import { Happened, Tasks } from "../model/tasks.js" */
/** @typedef {{id: string, resolve: (task: BackgroundTask | undefined) => void}} Stop */

/** @param {BackgroundTask} task */
const isOver = (task) => isFinished(task) || task.stop?.proof?.survivors !== undefined;

export class Stops {
  /** @type {Set<Stop>} */
  #open = new Set();

  /**
   * @param {Client} client
   * @param {Tasks} tasks
   */
  constructor(client, tasks) {
    this.client = client;
    this.tasks = tasks;
  }

  /** True while the end of a stop is awaited. */
  get isWaiting() {
    return this.#open.size > 0;
  }

  /**
   * Completes when a task is finished or its stop names survivors, and returns it; undefined if it was removed.
   * @param {BackgroundTask} task As the answer to the stop tells it
   * @returns {Promise<BackgroundTask | undefined>}
   */
  end(task) {
    return new Promise((resolve) => {
      const stop = { id: task.id, resolve };
      this.#open.add(stop);
      if (isOver(task)) this.#tell(task);
      // The events of its end may be older than the answer.
      else if (!this.tasks.live.has(task.id)) void this.#ask(stop);
    });
  }

  /** @param {Happened} event */
  apply({ type, task }) {
    if (!task) return;
    if (type === "TASK_EVENT_TYPE_REMOVED") this.#close(task.id, undefined);
    else this.#tell(task);
  }

  /** Asks for the tasks again: events may be missing. */
  reset() {
    for (const stop of this.#open) void this.#ask(stop);
  }

  /** @param {BackgroundTask} task */
  #tell(task) {
    if (isOver(task)) this.#close(task.id, task);
  }

  /**
   * @param {string} id
   * @param {BackgroundTask | undefined} task
   */
  #close(id, task) {
    for (const stop of this.#open) {
      if (stop.id !== id) continue;
      this.#open.delete(stop);
      stop.resolve(task);
    }
  }

  /** @param {Stop} stop */
  async #ask(stop) {
    const delays = new Delays();
    const request = { taskId: stop.id, outputTailBytes: 0, blockCount: 0 };
    while (this.#open.has(stop)) {
      try {
        const { task } = await this.client.call("Inspect", request);
        if (task) this.#tell(task);
        return;
      } catch (thrown) {
        if (CallError.of(thrown).isPassing) await pause(delays.next());
        else this.#close(stop.id, undefined);
      }
    }
  }
}
