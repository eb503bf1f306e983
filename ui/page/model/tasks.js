// The live tasks, the latest events and the place in the stream, as the stream tells them.

import { isFinished } from "../text/task.js";
import { time } from "../text/units.js";

/** @import { BackgroundTask, TaskEvent, WatchEventsResponse } from "../../types/contract.js" */

/** The number of events that are kept. */
export const KEPT_EVENTS = 2_000;

/** @typedef {{revision: number, type: string, at: string | undefined, task: BackgroundTask | undefined, session: string, match: TaskEvent["match"], times?: number}} Happened `times`: the number of events that it stands for */

export class Tasks {
  /** @type {Map<string, BackgroundTask>} */
  live = new Map();
  /** The latest events, oldest first. @type {Happened[]} */
  events = [];
  /** The revision to resume after. Absent: the stream begins with the initial state. @type {number | undefined} */
  revision;
  epoch = "";
  /** Counts the changes of the set of tasks and of their order. */
  version = 0;
  /** The number of initial states that are complete. */
  starts = 0;
  /** The tasks of an initial state that is not complete. @type {Map<string, BackgroundTask> | undefined} */
  #arriving;

  /** True once an initial state is complete. */
  get isComplete() {
    return this.starts > 0;
  }

  /** Begins with another initial state. The tasks stay until it is complete. */
  restart() {
    this.revision = undefined;
    this.epoch = "";
    this.#arriving = new Map();
  }

  /** The request that continues the stream. */
  request() {
    const common = { bookmarkInterval: "5s" };
    if (this.revision === undefined) {
      this.#arriving = new Map();
      return { ...common, initialState: true };
    }
    return { ...common, afterRevision: String(this.revision), epoch: this.epoch };
  }

  /**
   * Applies a message. Returns the event, unless it was applied before.
   * @param {WatchEventsResponse} message
   * @returns {Happened | undefined}
   */
  apply(message) {
    if (message.initial) {
      this.#arriving?.set(message.initial.id, message.initial);
    } else if (message.bookmark) {
      this.#bookmark(Number(message.bookmark.revision), message.bookmark.epoch);
    } else if (message.event) {
      return this.#event(message.event);
    }
    return undefined;
  }

  /**
   * @param {number} revision
   * @param {string} epoch
   */
  #bookmark(revision, epoch) {
    if (this.#arriving) {
      this.live = this.#arriving;
      this.#arriving = undefined;
      this.starts += 1;
      this.version += 1;
      // Revisions may mean something else now, and events between may be missing.
      this.events = [];
    }
    this.revision = Math.max(revision, this.revision ?? 0);
    this.epoch = epoch;
  }

  /** @param {TaskEvent} event */
  #event(event) {
    const happened = happenedOf(event);
    if (this.revision !== undefined && happened.revision <= this.revision) return undefined;
    this.revision = happened.revision;
    this.events.push(happened);
    // Now and then, so that an event costs no copy.
    if (this.events.length > KEPT_EVENTS * 1.5) this.events = this.events.slice(-KEPT_EVENTS);
    if (event.task) this.#put(event.task, event.type === "TASK_EVENT_TYPE_REMOVED");
    return happened;
  }

  /**
   * Adds events from before the stream, oldest first.
   * @param {Happened[]} earlier
   */
  addEarlier(earlier) {
    const first = this.events[0]?.revision ?? Infinity;
    this.events = [...earlier.filter((one) => one.revision < first), ...this.events];
  }

  /**
   * @param {BackgroundTask} task
   * @param {boolean} isRemoved
   */
  #put(task, isRemoved) {
    const before = this.live.get(task.id);
    if (isRemoved || isFinished(task)) {
      if (this.live.delete(task.id)) this.version += 1;
      return;
    }
    this.live.set(task.id, task);
    if (!before) this.version += 1;
  }

  /**
   * The place of a task in its queue, from 1; 0 if it does not wait in one.
   * @param {BackgroundTask} task
   */
  queuePosition(task) {
    const queue = task.spec?.queue;
    if (task.state !== "TASK_STATE_QUEUED" || !queue) return 0;
    const created = time(task.createTime);
    let position = 1;
    for (const other of this.live.values()) {
      if (other.state !== "TASK_STATE_QUEUED" || other.spec?.queue !== queue) continue;
      const at = time(other.createTime);
      if (at < created || (at === created && Number(other.revision) < Number(task.revision)))
        position += 1;
    }
    return position;
  }
}

/**
 * An event in the form in which it is kept.
 * @param {TaskEvent} event
 * @returns {Happened}
 */
export function happenedOf(event) {
  return {
    revision: Number(event.revision),
    type: event.type,
    at: event.eventTime,
    task: event.task,
    session: event.sessionActivity?.sessionId ?? event.task?.spec?.sessionId ?? "",
    match: event.match,
  };
}
