/** How tasks come from the foreground into the background. */
import { create } from "@bufbuild/protobuf";

import type { CallOptions } from "./call.js";
import { type DetachRequest, DetachRequestSchema } from "./gen/heeler/v1/background_tasks_pb.js";
import { toOptionalDuration } from "./time.js";

/** Whom to detach: a task, or every foreground task of a session. */
export type DetachTarget = { readonly taskId: string } | { readonly sessionId: string };

/** How to detach. */
export interface DetachOptions extends CallOptions {
  /** How long the task may run from here on. By default what its `timeoutMs` says. */
  readonly timeoutMs?: number | undefined;
  /** Why; kept with the task. */
  readonly reason?: string | undefined;
  /** Who asks; kept with the task. */
  readonly actor?: string | undefined;
}

export function toDetachRequest(target: DetachTarget, options: DetachOptions): DetachRequest {
  return create(DetachRequestSchema, {
    target:
      "taskId" in target
        ? { case: "taskId", value: target.taskId }
        : { case: "sessionId", value: target.sessionId },
    timeout: toOptionalDuration("timeoutMs", options.timeoutMs),
    reason: options.reason ?? "",
    actor: options.actor ?? "",
  });
}
