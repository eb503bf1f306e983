// Texts of an event.

import { line } from "./plain.js";
import { ending, outcome, span, words } from "./task.js";

/** @import { Happened } from "../model/tasks.js" */
/** @import { BackgroundTask } from "../../types/contract.js" */

/** @param {string} type */
export const typeKey = (type) => words(type, "TASK_EVENT_TYPE").replaceAll(" ", "-");

/** @param {string} type */
export function typeText(type) {
  const text = words(type, "TASK_EVENT_TYPE");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** @param {{name: string, uid?: number, pid?: number} | undefined} actor */
export function actorText(actor) {
  if (!actor) return "";
  const caller = actor.pid === undefined ? "" : `pid ${actor.pid}`;
  return [line(actor.name), caller].filter(Boolean).join(", ");
}

/** @type {Readonly<Record<string, (task: BackgroundTask) => string>>} */
const DETAILS = {
  CREATED: (task) => (task.spec?.queue ? `queue ${line(task.spec.queue)}` : ""),
  STARTED: (task) => (task.leader ? `pid ${task.leader.pid}` : ""),
  RESTARTED: (task) => `attempt ${task.attempts?.latest ?? ""}`,
  RESTARTING: (task) => outcome(task.attempts?.failedOutcome),
  STOPPING: (task) => {
    const by = actorText(task.stop?.actor);
    const cause = words(task.stop?.cause, "END_REASON");
    return [cause, by && `by ${by}`, line(task.stop?.reason ?? "")].filter(Boolean).join(" · ");
  },
  LEADER_EXITED: (task) => outcome(task.outcome),
  ENDED: ending,
  DETACHED: (task) => words(task.detachment?.cause, "DETACH_CAUSE"),
  STALE: (task) => `silent for ${span(task.spec?.silence?.staleAfter)}`,
  PROGRESS: (task) => {
    const percent = task.progress?.percent;
    return [percent === undefined ? "" : `${percent}%`, line(task.progress?.intent ?? "")]
      .filter(Boolean)
      .join(" ");
  },
  OUTPUT_LIMIT: (task) => words(task.outputLimit?.cause, "OUTPUT_LIMIT_CAUSE"),
  KILL_OVERDUE: (task) => `${task.stop?.proof?.survivors?.processes.length ?? 0} survivors`,
};

/** @param {Happened} event */
export function eventDetail({ type, task, match, session }) {
  if (match) {
    const [first] = match.lines;
    const more = Number(match.count) > 1 ? ` (${match.count} lines)` : "";
    return `${line(match.pattern)}: ${line(first?.text ?? "").slice(0, 300)}${more}`;
  }
  if (!task) return `session ${line(session)}`;
  return DETAILS[type.replace("TASK_EVENT_TYPE_", "")]?.(task).slice(0, 300) ?? "";
}
