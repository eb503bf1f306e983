// The events of one task, within a bound.

/** @import { Happened } from "./tasks.js" */

/** The most events that are kept. */
export const KEPT = 1_000;

/**
 * Adds an event. Progress in a row counts as one event; beyond the bound the oldest event is dropped.
 * @param {Happened[]} events Oldest first
 * @param {Happened} event
 */
export function remember(events, event) {
  const last = events.at(-1);
  const isProgress = event.type === "TASK_EVENT_TYPE_PROGRESS";
  if (isProgress && last?.type === event.type) {
    events[events.length - 1] = { ...event, times: (last.times ?? 1) + (event.times ?? 1) };
  } else if (events.push(event) > KEPT) {
    events.shift();
  }
}
