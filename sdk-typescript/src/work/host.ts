/**
 * A task whose work is a function of this process.
 *
 *   register ──> admitted ──> body ──┬─ returns ───────────────────────> its result ──> task
 *                                    ├─ throws because of its signals ─> `cancelled` ──> task
 *                                    └─ throws anything else ──────────> `failed` ─────> rejects
 */
import { randomUUID } from "node:crypto";

import type { BackgroundTask } from "../answers.js";
import type { Repeat } from "../connection/call.js";
import { CancelledError, ClosedError } from "../errors.js";
import { WorkRegisterSchema } from "../gen/heeler/v1/index.js";
import { toMessage } from "../options/message.js";
import type { StopOptions, TaskOptions } from "../options/spec.js";
import { reasonText } from "../streams/reason.js";
import type { ResumeOptions } from "../streams/resume.js";
import type { First } from "./connection.js";
import type { Driver } from "./driver.js";
import { type BodyResult, checkResult } from "./result.js";
import type { Work } from "./work.js";

/** Time for the daemon to record the reason of an abort. */
const ABORT_LIMIT_MS = 5000;

/** A task without a process: the options of `register`. */
export interface HostedOptions
  extends
    Pick<
      TaskOptions,
      | "requestId"
      | "name"
      | "sessionId"
      | "parentId"
      | "labels"
      | "workingDirectory"
      | "timeoutMs"
      | "idleTimeoutMs"
      | "silence"
      | "exclusive"
      | "queue"
    >,
    Pick<ResumeOptions, "giveUpAfterMs"> {
  /** The times of a stop: soft, then final. By default 10 s and 5 s. */
  readonly stop?: Pick<StopOptions, "softGraceMs" | "graceMs"> | undefined;
  /** Time without a sign of this process after which the task is LOST: 1 s to 1 h, 30 s by default. */
  readonly leaseMs?: number | undefined;
  /** Ends the registration, not the task. */
  readonly signal?: AbortSignal | undefined;
}

/** The options of `host`. */
export interface HostOptions extends Omit<HostedOptions, "signal"> {
  /**
   * An abort stops the task, with the signal's reason as its reason, and the body's signals abort at
   * once. `host` then rejects with the reason when the body has ended.
   */
  readonly signal?: AbortSignal | undefined;
}

/** The work of a hosted task. */
export type Body = (work: Work) => BodyResult | Promise<BodyResult>;

/** The options of `join`. */
export interface JoinOptions extends ResumeOptions {
  /** Takes the place of another worker that is connected. Without it, this one is refused. */
  readonly takeOver?: boolean | undefined;
}

/** The first message of a hosted task, and when it may be sent again. */
export function toRegister(options: HostedOptions): { first: First; repeat: Repeat } {
  const { requestId = randomUUID(), leaseMs, ...fields } = options;
  const spec = { ...fields, kind: "hosted", signal: undefined, giveUpAfterMs: undefined };
  const value = toMessage(WorkRegisterSchema, { requestId, leaseMs, spec });
  return {
    first: { case: "register", value },
    repeat: requestId === "" ? "ifNotReceived" : "always",
  };
}

/** Runs a body as the worker of a task, and returns the finished task. */
export async function runBody(
  work: Work,
  driver: Driver,
  body: Body,
  signal: AbortSignal | undefined,
): Promise<BackgroundTask> {
  let stopped: Promise<void> | undefined;
  const aborted = (): void => {
    driver.abort(signal?.reason);
    stopped = stop(work, driver, signal?.reason);
  };
  if (signal?.aborted === true) {
    aborted();
  }
  signal?.addEventListener("abort", aborted, { once: true });
  try {
    let ended = await work.admitted();
    if (ended === undefined) {
      const carried = await carryOut(work, body);
      // The request to stop is recorded before the result, which would end the task without it.
      await stopped;
      ended = await finish(work, carried);
    }
    signal?.throwIfAborted();
    return ended;
  } catch (error) {
    // Without a daemon, the task was left.
    throw error instanceof ClosedError && signal?.aborted === true ? signal.reason : error;
  } finally {
    signal?.removeEventListener("abort", aborted);
    await work.leave();
  }
}

/** Records the stop of a task. Its worker leaves it if the daemon is away: the lease ends it then. */
async function stop(work: Work, driver: Driver, reason: unknown): Promise<void> {
  const request = { reason: reasonText(reason), graceful: { softGraceMs: 0 }, wait: false };
  try {
    await work.task.cancel({ ...request, deadlineMs: ABORT_LIMIT_MS });
  } catch {
    driver.drop();
  }
}

/** The result of a body, and the error to reject with. */
interface Carried {
  readonly result: BodyResult;
  readonly thrown?: { readonly error: unknown };
}

async function carryOut(work: Work, body: Body): Promise<Carried> {
  try {
    // It may have been stopped before it could begin.
    work.signal.throwIfAborted();
    const result = await body(work);
    checkResult(result);
    return { result };
  } catch (error) {
    const text = reasonText(error);
    return isReaction(error, work)
      ? { result: { status: "cancelled", text } }
      : { result: { status: "failed", text }, thrown: { error } };
  }
}

async function finish(work: Work, { result, thrown }: Carried): Promise<BackgroundTask> {
  if (thrown === undefined) {
    return await work.finish(result);
  }
  // The body's own error says more than one of the delivery.
  await work.finish(result).catch(() => undefined);
  throw thrown.error;
}

/** True if a body has thrown because its signals told it to stop. */
function isReaction(error: unknown, { stopping, signal }: Work): boolean {
  if (!stopping.aborted) {
    return false;
  }
  const reasons: unknown[] = [stopping.reason, signal.reason];
  return (
    error instanceof CancelledError ||
    reasons.includes(error) ||
    (error instanceof Error && (error.name === "AbortError" || reasons.includes(error.cause)))
  );
}
