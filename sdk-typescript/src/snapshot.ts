/** A task's state with its exit code. */
import type { BackgroundTask } from "./gen/heeler/v1/index.js";

/** A task as it was at its `revision`. */
export type TaskSnapshot = BackgroundTask & {
  /**
   * The code that the leader exited with. Undefined if a signal ended it, if it never ran, or if it
   * still runs: `outcome` has the details.
   */
  readonly exitCode: number | undefined;
};

/** Adds the exit code to a task of an answer. */
export function toSnapshot(task: BackgroundTask): TaskSnapshot {
  const result = task.outcome?.result;
  return Object.assign(task, { exitCode: result?.case === "exitCode" ? result.value : undefined });
}
