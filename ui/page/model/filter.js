// The search of tasks by words.

import { command, flags, kind, stateText } from "../text/task.js";

/** @import { BackgroundTask } from "../../types/contract.js" */

/** @type {WeakMap<BackgroundTask, string>} */
const texts = new WeakMap();

/** @param {BackgroundTask} task */
function text(task) {
  let known = texts.get(task);
  if (known === undefined) {
    const spec = task.spec;
    const labels = Object.entries(spec?.labels ?? {}).map(([key, value]) => `${key}=${value}`);
    const flagged = flags(task).map((flag) => flag.text);
    const parts = [task.id, stateText(task), kind(task), spec?.name, spec?.sessionId, spec?.queue];
    known = [...parts, ...labels, ...flagged, task.progress?.intent, command(task).slice(0, 4096)]
      .join("\n")
      .toLowerCase();
    texts.set(task, known);
  }
  return known;
}

/**
 * Returns a test for tasks that contain every word of the query.
 * @param {string} query
 * @returns {(task: BackgroundTask) => boolean}
 */
export function matcher(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return (task) => words.every((word) => text(task).includes(word));
}
