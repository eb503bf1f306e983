/**
 * A command in the foreground: started, attached to and, if the caller leaves it before its end, stopped
 * or moved to the background. The attachment itself is in attach.ts.
 *
 *   spawn ──> attached ──> ended
 *                │
 *                └─ abort, error or loop left ──> cancel or detach with that reason ──> rejects
 */
import type { HeelerClient } from "../client.js";
import { answered } from "../connection/answered.js";
import { present } from "../connection/failure.js";
import { ProtocolError } from "../errors.js";
import { type AttachEndReason, OutputStream, type SpawnNotice } from "../gen/heeler/v1/index.js";
import type { ArgvOptions, ShellOptions, SpawnOptions, TaskOptions } from "../options/spec.js";
import { choose } from "../options/words.js";
import type { BackgroundTask } from "../answers.js";
import type { Task } from "../task.js";
import type { AttachEnd, AttachItem } from "./attach.js";
import type { Chunk } from "./output.js";
import { reasonText } from "./reason.js";
import type { Stream } from "./stream.js";

/** Maximum amount of output in a result. */
const DEFAULT_MAX_BYTES = 16 << 20;

/** The options of `runStream`. */
export type RunStreamOptions = (ShellOptions | ArgvOptions) &
  TaskOptions & {
    /**
     * An abort before the end of the run does what `onAbort` says, waits until that is done, and
     * rejects with the signal's reason. The reason is kept with the task.
     */
    readonly signal?: AbortSignal | undefined;
    /**
     * Action on an abort, and when the loop is left. `cancel` (the default): the command and its whole
     * tree are stopped. `detach`: it continues in the background, also when this process dies.
     */
    readonly onAbort?: "cancel" | "detach" | undefined;
  };

/** The options of `run`. */
export type RunOptions = RunStreamOptions & {
  /** Called once, when the command has been started. */
  readonly onStart?: ((task: Task) => void | Promise<void>) | undefined;
  /** Called with each piece of output, one at a time. */
  readonly onOutput?: ((chunk: Chunk, task: Task) => void | Promise<void>) | undefined;
  /** Maximum amount of output in the result: the first 16 MiB by default. */
  readonly maxOutputBytes?: number | undefined;
};

/** An item of `runStream`: the start, then the items of an attachment. */
export type RunItem = RunStart | AttachItem;

/** The start of a run. */
export interface RunStart {
  readonly kind: "started";
  readonly task: Task;
  /** Differences between the request and the task. */
  readonly notices: readonly SpawnNotice[];
}

/** The result of a run: the command finished, or left the foreground. */
export interface RunResult {
  /** The task at the end of the run. */
  readonly task: BackgroundTask;
  /** The code that the leader exited with. Undefined if it did not exit by itself, or runs on. */
  readonly exitCode: number | undefined;
  readonly reason: AttachEndReason;
  /** Differences between the request and the task. */
  readonly notices: readonly SpawnNotice[];
  /** The standard output of the run. Invalid UTF-8 is replaced by U+FFFD. */
  readonly stdout: string;
  /** The standard error of the run. */
  readonly stderr: string;
  /** True if there was more output. The task still has all of it. */
  readonly isTruncated: boolean;
}

/** Collects the output of a run and returns its result. */
export async function collectRun(
  items: Stream<RunItem>,
  options: Pick<RunOptions, "onStart" | "onOutput" | "maxOutputBytes">,
): Promise<RunResult> {
  const { onStart, onOutput, maxOutputBytes = DEFAULT_MAX_BYTES } = options;
  const collected = new Collected(maxOutputBytes);
  let start: RunStart | undefined;
  let end: AttachEnd | undefined;
  for (let next; (next = await items.next()).done !== true;) {
    const item = next.value;
    try {
      if (item.kind === "started") {
        start = item;
        await onStart?.(item.task);
      } else if (item.kind === "output") {
        collected.add(item.chunk);
        await onOutput?.(item.chunk, present("started", start).task);
      } else if (item.kind === "ended") {
        end = item;
      }
    } catch (error) {
      // The run learns of the error, and stops the command with it as the reason.
      await items.throw(error);
    }
  }
  if (start === undefined || end === undefined) {
    throw new ProtocolError("the attachment ended without its last message");
  }
  const { task, reason } = end;
  const { notices } = start;
  return { task, exitCode: task.exitCode, reason, notices, ...collected.result() };
}

type Leave = (task: Task, reason: string) => Promise<unknown>;

const LEAVE: ReadonlyMap<string, Leave> = new Map<string, Leave>([
  ["cancel", async (task, reason) => await task.cancel({ reason })],
  ["detach", async (task, reason) => await task.detach({ reason })],
]);

/** Runs a command and gives its items as they arrive. */
export async function* runItems(
  client: HeelerClient,
  options: RunStreamOptions,
): AsyncGenerator<RunItem, void, undefined> {
  const { signal, onAbort = "cancel", ...rest } = options;
  const leave = choose("onAbort", LEAVE, onAbort);
  signal?.throwIfAborted();
  const onDisconnect =
    rest.foreground?.onDisconnect ?? (onAbort === "detach" ? "detach" : undefined);
  const spawn: SpawnOptions = { ...rest, foreground: { ...rest.foreground, onDisconnect } };
  const { task: started, notices } = await answered(signal, async (limit) => {
    return await client.spawnResponse({ ...spawn, signal: limit });
  });
  const task = client.task(present("task", started).id);
  const attachment = new RunAttachment(task, leave, signal);
  try {
    yield { kind: "started", task, notices };
    for (let item; (item = await attachment.next()) !== undefined;) {
      yield item;
    }
  } catch (error) {
    await attachment.leaveAfter(error);
    throw error;
  } finally {
    await attachment.close();
  }
}

/** An attachment that stops or detaches its task, while still attached, when it is left. */
class RunAttachment {
  readonly #end = new AbortController();
  readonly #items: Stream<AttachItem>;
  readonly #aborted = (): void => {
    this.#leaving = this.leave(this.task, reasonText(this.signal?.reason)).then(
      () => {
        this.#end.abort(this.signal?.reason);
      },
      (failure: unknown) => {
        this.#end.abort(failure);
      },
    );
  };
  #leaving: Promise<void> | undefined;
  #hasEnded = false;

  constructor(
    private readonly task: Task,
    private readonly leave: Leave,
    private readonly signal: AbortSignal | undefined,
  ) {
    this.#items = task.attach({ foregroundOnly: true, signal: this.#end.signal });
    if (signal?.aborted === true) {
      this.#aborted();
    } else {
      signal?.addEventListener("abort", this.#aborted, { once: true });
    }
  }

  /** The next item; undefined after the last. */
  async next(): Promise<AttachItem | undefined> {
    try {
      const { value } = await this.#items.next();
      if (value?.kind === "ended") {
        this.#hasEnded = true;
        // From here on, an abort has nothing to stop.
        this.signal?.removeEventListener("abort", this.#aborted);
        await this.#leaving;
        this.#end.signal.throwIfAborted();
      }
      return value ?? undefined;
    } catch (error) {
      // The task was left, or cannot be attached to: then its `onDisconnect` applies.
      this.#hasEnded = true;
      throw error;
    }
  }

  /** Leaves the task because of an error, which is thrown also if leaving fails. */
  async leaveAfter(error: unknown): Promise<void> {
    if (!this.#hasEnded && this.#leaving === undefined) {
      this.#hasEnded = true;
      await this.leave(this.task, reasonText(error)).catch(() => undefined);
    }
  }

  /** Leaves the task if the caller left the loop before the end. */
  async close(): Promise<void> {
    this.signal?.removeEventListener("abort", this.#aborted);
    try {
      if (this.#leaving !== undefined) {
        await this.#leaving;
      } else if (!this.#hasEnded) {
        await this.leave(this.task, "the caller left the run");
      }
    } finally {
      await this.#items.return();
    }
  }
}

/** The output of a run, up to a limit. */
class Collected {
  readonly #parts: Record<"stdout" | "stderr", Uint8Array[]> = { stdout: [], stderr: [] };
  #isTruncated = false;

  constructor(private left: number) {
    if (!Number.isInteger(left) || left < 0) {
      throw new RangeError(
        `maxOutputBytes must be a whole number of at least 0, not ${String(left)}`,
      );
    }
  }

  add({ stream, data }: Chunk): void {
    const kept = data.subarray(0, this.left);
    this.left -= kept.length;
    this.#isTruncated ||= kept.length < data.length;
    this.#parts[stream === OutputStream.STDERR ? "stderr" : "stdout"].push(kept);
  }

  result(): Pick<RunResult, "stdout" | "stderr" | "isTruncated"> {
    return {
      stdout: Buffer.concat(this.#parts.stdout).toString("utf8"),
      stderr: Buffer.concat(this.#parts.stderr).toString("utf8"),
      isTruncated: this.#isTruncated,
    };
  }
}
