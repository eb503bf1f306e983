/** How tasks are stopped. */
import { create } from "@bufbuild/protobuf";

import type { CallOptions } from "./call.js";
import { choose } from "./choice.js";
import { type Filter, toFilter } from "./filter.js";
import {
  CancelMode,
  type CancelRequest,
  CancelRequestSchema,
} from "./gen/heeler/v1/background_tasks_pb.js";
import { toOptionalDuration } from "./time.js";

/** Whom to stop: a task, every live task of a session, or every live task that matches. */
export type CancelTarget =
  { readonly taskId: string } | { readonly sessionId: string } | { readonly filter: Filter };

/** How to stop. */
export interface CancelOptions extends CallOptions {
  /**
   * `graceful` (the default): the stop signal, then the grace, then a kill of the whole tree.
   * `force`: a kill of the whole tree at once.
   */
  readonly mode?: "graceful" | "force" | undefined;
  /** Instead of the task's own grace. Only with graceful. */
  readonly graceMs?: number | undefined;
  /** Instead of the task's own stop signal, e.g. `SIGINT`. Only with graceful. */
  readonly stopSignal?: string | undefined;
  /** Why; kept with the task. */
  readonly reason?: string | undefined;
  /** Who asks; kept with the task. */
  readonly actor?: string | undefined;
  /** False: answer as soon as the intent is durable. By default when every process is proven gone. */
  readonly wait?: boolean | undefined;
  /** First stop the tasks that it spawned, and theirs. */
  readonly cascade?: boolean | undefined;
}

const MODES = { graceful: CancelMode.GRACEFUL, force: CancelMode.FORCE } as const;

export function toCancelRequest(target: CancelTarget, options: CancelOptions): CancelRequest {
  return create(CancelRequestSchema, {
    target: toTarget(target),
    mode: choose("mode", MODES, options.mode ?? "graceful"),
    grace: toOptionalDuration("graceMs", options.graceMs),
    signal: options.stopSignal ?? "",
    reason: options.reason ?? "",
    actor: options.actor ?? "",
    wait: options.wait ?? true,
    cascade: options.cascade ?? false,
  });
}

function toTarget(target: CancelTarget): CancelRequest["target"] {
  if ("taskId" in target) {
    return { case: "taskId", value: target.taskId };
  }
  if ("sessionId" in target) {
    return { case: "sessionId", value: target.sessionId };
  }
  return { case: "filter", value: toFilter(target.filter) };
}
