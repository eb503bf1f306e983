// Texts of a task: its state, its title, its command, its end.

import { line } from "./plain.js";
import { duration, seconds, time } from "./units.js";

/** @import { BackgroundTask, Outcome, TaskState } from "../../types/contract.js" */

/** @type {Record<TaskState, [string, string]>} Key and text */
const STATES = {
  TASK_STATE_UNSPECIFIED: ["unknown", "Unknown"],
  TASK_STATE_QUEUED: ["queued", "Queued"],
  TASK_STATE_STARTING: ["starting", "Starting"],
  TASK_STATE_RUNNING: ["running", "Running"],
  TASK_STATE_STOPPING: ["stopping", "Stopping"],
  TASK_STATE_COMPLETED: ["completed", "Completed"],
  TASK_STATE_FAILED: ["failed", "Failed"],
  TASK_STATE_CANCELLED: ["cancelled", "Cancelled"],
  TASK_STATE_TIMED_OUT: ["timed-out", "Timed out"],
  TASK_STATE_LOST: ["lost", "Lost"],
};

/** @type {readonly TaskState[]} */
export const FINISHED = [
  "TASK_STATE_COMPLETED",
  "TASK_STATE_FAILED",
  "TASK_STATE_CANCELLED",
  "TASK_STATE_TIMED_OUT",
  "TASK_STATE_LOST",
];
const FINISHED_SET = new Set(FINISHED);

/** @param {BackgroundTask} task */
export const isFinished = (task) => FINISHED_SET.has(task.state);

/** @param {BackgroundTask} task */
export const stateKey = (task) => STATES[task.state][0];

/** @param {BackgroundTask} task */
export const stateText = (task) => STATES[task.state][1];

/**
 * The name of an enum's value in words: `END_REASON_IDLE_TIMEOUT` is `idle timeout`.
 * @param {string | undefined} value
 * @param {string} prefix
 */
export function words(value, prefix) {
  return (value ?? "").replace(`${prefix}_`, "").toLowerCase().replaceAll("_", " ");
}

/** @param {BackgroundTask} task */
export const kind = (task) => words(task.spec?.kind, "TASK_KIND");

/**
 * The command in one line.
 * @param {BackgroundTask} task
 */
export function command(task) {
  const { argv, shell } = task.spec ?? {};
  if (shell) return line(shell.script);
  return argv ? argv.args.map(quoted).join(" ") : "";
}

/** @param {string} argument */
function quoted(argument) {
  return /^[\w@%+=:,./-]+$/.test(argument)
    ? argument
    : `'${line(argument).replaceAll("'", "'\\''")}'`;
}

/**
 * The name; without one, the command.
 * @param {BackgroundTask} task
 */
export function title(task) {
  return (
    line(task.spec?.name ?? "").slice(0, 300) || command(task).slice(0, 300) || `${kind(task)} task`
  );
}

/** @param {Outcome | undefined} outcome */
export function outcome(outcome) {
  if (!outcome) return "";
  if (outcome.signal)
    return `${outcome.signal.name}${outcome.signal.coreDumped ? ", core dumped" : ""}`;
  if (outcome.spawnError) {
    const { stage, path, message } = outcome.spawnError;
    return line([words(stage, "SPAWN_STAGE"), path, message].filter(Boolean).join(": "));
  }
  if (outcome.unknown) return line(outcome.unknown.detail);
  if (outcome.worker) return words(outcome.worker, "WORKER_STATUS");
  return outcome.exitCode === undefined ? "" : `exit ${outcome.exitCode}`;
}

/**
 * The end of a finished task, such as `exit 1` or `timeout, SIGTERM`.
 * @param {BackgroundTask} task
 */
export function ending(task) {
  const ended = outcome(task.outcome);
  const reason = words(task.endReason, "END_REASON");
  const isPlain = ["exited", "unspecified", "signalled", "spawn failed"].includes(reason);
  return [isPlain ? "" : reason, ended].filter(Boolean).join(", ");
}

/**
 * The end of a finished task beside its state, which it does not repeat.
 * @param {BackgroundTask} task
 */
export function endingBesideState(task) {
  const isSaid = task.state === "TASK_STATE_CANCELLED" && task.endReason === "END_REASON_CANCELLED";
  return isSaid ? outcome(task.outcome) : ending(task);
}

/** @typedef {{key: string, text: string}} Flag */

/**
 * The conditions of a live task that a person should know of.
 * @param {BackgroundTask} task
 * @returns {Flag[]}
 */
export function flags(task) {
  /** @type {Flag[]} */
  const flags = [];
  if (isFinished(task)) return flags;
  if (task.needsInput) flags.push({ key: "input", text: "Needs input" });
  if (task.stale) flags.push({ key: "stale", text: "Stale" });
  if (task.stop?.proof?.survivors) flags.push({ key: "survivors", text: "Survivors" });
  if (task.readiness === "READINESS_PENDING") flags.push({ key: "pending", text: "Not ready yet" });
  if (task.readiness === "READINESS_READY") flags.push({ key: "ready", text: "Ready" });
  if (task.readiness === "READINESS_NOT_READY") flags.push({ key: "unready", text: "Not ready" });
  if (task.placement === "PLACEMENT_FOREGROUND")
    flags.push({ key: "foreground", text: "Foreground" });
  if (task.attempts && task.attempts.latest > 1) {
    flags.push({ key: "attempt", text: `Attempt ${task.attempts.latest}` });
  }
  if (task.outcome) flags.push({ key: "orphans", text: `Orphans, ${outcome(task.outcome)}` });
  return flags;
}

/**
 * The milliseconds that a task has run, or waited if it does not run yet.
 * @param {BackgroundTask} task
 * @param {number} now
 */
export function elapsed(task, now) {
  const from = time(task.startTime) || time(task.createTime);
  return (time(task.endTime) || now) - from;
}

/**
 * A duration of protobuf's form in words.
 * @param {string | undefined} text
 */
export const span = (text) => (text ? duration(seconds(text)) : "");
