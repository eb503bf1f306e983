// The stream of events. It resumes after a break where it was, so the model loses and repeats nothing.

import { Delays, pause } from "../connect/delays.js";
import { CallError, isAborted } from "../connect/error.js";
import { happenedOf } from "../model/tasks.js";

/** @import { Client } from "../connect/client.js" */
/** @import { Happened, Tasks } from "../model/tasks.js" */
/** @import { Connection } from "./connection.js" */

/** Refusals that another attempt does not change. */
const FINAL = new Set([
  "unauthenticated",
  "permission_denied",
  "unimplemented",
  "invalid_argument",
]);

/**
 * @typedef {object} Watched
 * @property {Client} client
 * @property {Tasks} tasks
 * @property {Connection} connection
 * @property {() => void} onConnected
 * @property {(events: Happened[]) => void} onEvents After each read, also without events
 */

/**
 * Watches until the signal is aborted or the server refuses.
 * @param {Watched} watched
 * @param {AbortSignal} signal
 */
export async function watch(watched, signal) {
  const delays = new Delays();
  const { connection } = watched;
  while (!signal.aborted) {
    try {
      await read(watched, delays, signal);
    } catch (thrown) {
      const error = CallError.of(thrown);
      if (isAborted(signal)) return;
      if (error.is("REVISION_OUT_OF_RANGE", "EPOCH_MISMATCH")) {
        watched.tasks.restart();
      } else if (FINAL.has(error.code)) {
        connection.set("refused", error.message, error.code === "unauthenticated");
        return;
      } else {
        connection.set("reconnecting", error.message);
        await pause(delays.next(), signal);
      }
    }
  }
}

/**
 * @param {Watched} watched
 * @param {Delays} delays
 * @param {AbortSignal} signal
 */
async function read({ client, tasks, connection, onConnected, onEvents }, delays, signal) {
  let isFirst = true;
  for await (const messages of client.stream("WatchEvents", tasks.request(), signal)) {
    if (isFirst) {
      isFirst = false;
      delays.reset();
      connection.set("connected");
      onConnected();
    }
    const events = messages
      .map((message) => tasks.apply(message))
      .filter((event) => event !== undefined);
    onEvents(events);
  }
}

/**
 * The events that are kept after a revision and up to another one, oldest first.
 * @param {Client} client
 * @param {{after: number, until: number, epoch: string, taskId?: string}} range
 * @param {AbortSignal} signal
 * @param {(events: Happened[], event: Happened) => void} [add]
 * @returns {Promise<Happened[]>}
 */
export async function past(client, { after, until, epoch, taskId }, signal, add = append) {
  /** @type {Happened[]} */
  const events = [];
  const filter = taskId ? { filter: { taskIds: [taskId] } } : {};
  const request = { afterRevision: String(after), epoch, bookmarkInterval: "0.1s", ...filter };
  try {
    for await (const messages of client.stream("WatchEvents", request, signal)) {
      for (const { event, bookmark } of messages) {
        const revision = Number(event?.revision ?? bookmark?.revision ?? 0);
        if (event && revision <= until) add(events, happenedOf(event));
        // The first bookmark is the place where the stream begins.
        if (revision >= until) return events;
      }
    }
  } catch (thrown) {
    const error = CallError.of(thrown);
    const oldest = Number(error.metadata["oldest"] ?? NaN);
    if (!error.is("REVISION_OUT_OF_RANGE") || !(oldest - 1 > after)) throw error;
    const kept = { after: oldest - 1, until, epoch, ...(taskId ? { taskId } : {}) };
    return past(client, kept, signal, add);
  }
  return events;
}

/**
 * @param {Happened[]} events
 * @param {Happened} event
 */
function append(events, event) {
  events.push(event);
}
