/** Waiting for tasks to be over, or to hold nobody any more. */
import { create } from "@bufbuild/protobuf";

import type { CallOptions, Caller } from "./call.js";
import { choose } from "./choice.js";
import {
  WaitCondition,
  WaitRequestSchema,
  type WaitResponse,
} from "./gen/heeler/v1/background_tasks_pb.js";
import { checkNumber, toOptionalDuration } from "./time.js";

/** Whom to wait for: some tasks, or every task of a session, those included that start meanwhile. */
export type WaitTarget =
  | {
      readonly taskIds: readonly string[];
      /** How many of them must meet the condition: 1 for any. By default all. */
      readonly count?: number | undefined;
    }
  | { readonly sessionId: string };

/** What to wait for. */
export interface UntilOptions {
  /**
   * `finished` (the default): it is over. `released`: it holds nobody in the foreground, because it is in
   * the background or over.
   */
  readonly until?: "finished" | "released" | undefined;
}

const CONDITIONS = {
  finished: WaitCondition.FINISHED,
  released: WaitCondition.RELEASED,
} as const;

/** What to wait for, and how long. Ending a wait, however it ends, ends no task. */
export interface WaitOptions extends CallOptions, UntilOptions {
  /**
   * After so long the answer is that it is not satisfied, and what is still running; 0: only look. It
   * counts across restarts of the daemon. By default as long as it takes.
   */
  readonly timeoutMs?: number | undefined;
}

export async function wait(
  caller: Caller,
  target: WaitTarget,
  options: WaitOptions,
): Promise<WaitResponse> {
  const begun = performance.now();
  const { timeoutMs } = options;
  if (timeoutMs !== undefined) {
    checkNumber("timeoutMs", timeoutMs);
  }
  const until = choose("until", CONDITIONS, options.until ?? "finished");
  const init =
    "sessionId" in target
      ? { sessionId: target.sessionId }
      : { taskIds: [...target.taskIds], count: target.count };
  return await caller.call("always", options, (stub, call) => {
    // One that is negative stays so, and is refused.
    const left =
      timeoutMs === undefined || timeoutMs < 0
        ? timeoutMs
        : Math.max(timeoutMs - (performance.now() - begun), 0);
    const timeout = toOptionalDuration("timeoutMs", left);
    return stub.wait(create(WaitRequestSchema, { ...init, until, timeout }), call);
  });
}
