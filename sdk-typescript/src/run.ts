/**
 * A command in the foreground: it is started, held and, whoever leaves it before its release, stopped or
 * sent into the background. It owns that promise; the hold itself is attach.ts.
 */
import type { AttachItem } from "./attach.js";
import { choose } from "./choice.js";
import type { HeelerClient } from "./client.js";
import { ProtocolError } from "./errors.js";
import type { ReleaseReason, SpawnNotice } from "./gen/heeler/v1/background_tasks_pb.js";
import { OutputStream } from "./gen/heeler/v1/output_pb.js";
import type { BackgroundTask } from "./gen/heeler/v1/task_pb.js";
import type { Chunk } from "./output.js";
import { present } from "./present.js";
import type { ArgvOptions, ShellOptions, SpawnOptions, TaskOptions } from "./spawn.js";
import type { Task } from "./task.js";

/** How much output is collected, if nothing else is said. */
const DEFAULT_MAX_BYTES = 16 << 20;

/** How long an answer to the start is waited for after an abort: without it, nobody knows what to stop. */
const START_PATIENCE_MS = 5000;

/** What to run in the foreground, and what becomes of it if it is left. */
export type RunStreamOptions = (ShellOptions | ArgvOptions) &
  Omit<TaskOptions, "placement"> & {
    /**
     * Aborted before the release, it does what `onAbort` says, waits until that is done, and rejects with
     * the signal's reason.
     */
    readonly signal?: AbortSignal | undefined;
    /**
     * What an abort does, or leaving the loop: `cancel` (the default) stops the command and its whole tree;
     * `detach` lets it go on in the background, also when this process dies.
     */
    readonly onAbort?: "cancel" | "detach" | undefined;
  };

/** As RunStreamOptions, and where the output goes. */
export type RunOptions = RunStreamOptions & {
  /** Called once, when the command has been started: its handle is how another part detaches it. */
  readonly onStart?: ((task: Task) => void | Promise<void>) | undefined;
  /** Called with each piece of output; the next one waits until it is done. */
  readonly onOutput?: ((chunk: Chunk, task: Task) => void | Promise<void>) | undefined;
  /** How much of the output the result has: its first 16 MiB by default. */
  readonly maxOutputBytes?: number | undefined;
};

/** What `runStream` gives: the start, then what an attachment gives. */
export type RunItem =
  | {
      readonly kind: "started";
      readonly task: Task;
      /** What was done differently from what was asked for. */
      readonly notices: readonly SpawnNotice[];
    }
  | AttachItem;

/** How a run ended: with the end of the command, or with its release into the background. */
export interface RunResult {
  /** The task as it was when it was released. */
  readonly task: BackgroundTask;
  /** Why it was. */
  readonly reason: ReleaseReason;
  /** What was done differently from what was asked for. */
  readonly notices: readonly SpawnNotice[];
  /** What came on descriptor 1 before the release; invalid UTF-8 is replaced by U+FFFD. */
  readonly stdout: string;
  /** What came on descriptor 2 before the release. */
  readonly stderr: string;
  /** Whether there was more output than is here. The task still has all of it. */
  readonly isTruncated: boolean;
}

const LEAVE = {
  cancel: async (task: Task): Promise<unknown> => await task.cancel({ reason: "aborted" }),
  detach: async (task: Task): Promise<unknown> => await task.detach({ reason: "aborted" }),
} as const;

type Leave = (typeof LEAVE)[keyof typeof LEAVE];

/** Runs a command and collects what it writes. */
export async function run(client: HeelerClient, options: RunOptions): Promise<RunResult> {
  const { onStart, onOutput, maxOutputBytes, ...rest } = options;
  const collected = new Collected(maxOutputBytes ?? DEFAULT_MAX_BYTES);
  let started: Extract<RunItem, { kind: "started" }> | undefined;
  for await (const item of runStream(client, rest)) {
    switch (item.kind) {
      case "started":
        started = item;
        await onStart?.(item.task);
        break;
      case "attached":
        break;
      case "output":
        collected.add(item.chunk);
        await onOutput?.(item.chunk, present("started", started).task);
        break;
      case "released": {
        const { task, reason } = item;
        return { task, reason, notices: started?.notices ?? [], ...collected.result() };
      }
    }
  }
  throw new ProtocolError("the attachment ended without a release");
}

/** Runs a command and gives what happens as it comes. */
export async function* runStream(
  client: HeelerClient,
  options: RunStreamOptions,
): AsyncGenerator<RunItem, void, undefined> {
  const { signal, onAbort = "cancel", ...rest } = options;
  const leave = choose<Leave>("onAbort", LEAVE, onAbort);
  signal?.throwIfAborted();
  const onHolderGone = rest.onHolderGone ?? (onAbort === "detach" ? "detach" : undefined);
  const spawn: SpawnOptions = { ...rest, onHolderGone, placement: "foreground" };
  const { id, notices } = await start(client, spawn, signal);
  const task = client.task(id);
  const hold = new Hold(task, leave, signal);
  try {
    yield { kind: "started", task, notices };
    for (let item; (item = await hold.next()) !== undefined;) {
      yield item;
    }
  } finally {
    await hold.close();
  }
}

/** Starts it. An abort meanwhile is seen to by the hold, which needs to know what has been started. */
async function start(
  client: HeelerClient,
  options: SpawnOptions,
  signal: AbortSignal | undefined,
): Promise<{ id: string; notices: readonly SpawnNotice[] }> {
  const patience = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const aborted = (): void => {
    timer = setTimeout(() => {
      patience.abort(signal?.reason);
    }, START_PATIENCE_MS);
  };
  signal?.addEventListener("abort", aborted, { once: true });
  try {
    const answer = await client.spawnResponse({ ...options, signal: patience.signal });
    return { id: present("task", answer.task).id, notices: answer.notices };
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", aborted);
  }
}

/** An attachment that is not simply let go of: the task is told what to do while it is still held. */
class Hold {
  readonly #end = new AbortController();
  readonly #items: AsyncGenerator<AttachItem, void, undefined>;
  readonly #aborted = (): void => {
    this.#leaving = this.leave(this.task).then(
      () => {
        this.#end.abort(this.signal?.reason);
      },
      (failure: unknown) => {
        this.#end.abort(failure);
      },
    );
  };
  #leaving: Promise<void> | undefined;
  #isOver = false;

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

  /** The next item; undefined: the release was the last. */
  async next(): Promise<AttachItem | undefined> {
    try {
      const { value } = await this.#items.next();
      if (value?.kind === "released") {
        this.#isOver = true;
        // From here on, there is nothing that could be left.
        this.signal?.removeEventListener("abort", this.#aborted);
        await this.#leaving;
        this.#end.signal.throwIfAborted();
      }
      return value ?? undefined;
    } catch (error) {
      // Either it was left, or it cannot be held: then `onHolderGone` decides.
      this.#isOver = true;
      throw error;
    }
  }

  /** Sees to a command that its caller walked away from. */
  async close(): Promise<void> {
    this.signal?.removeEventListener("abort", this.#aborted);
    try {
      if (this.#leaving !== undefined) {
        await this.#leaving;
      } else if (!this.#isOver) {
        await this.leave(this.task);
      }
    } finally {
      await this.#items.return();
    }
  }
}

/** What a run has written, up to a bound. */
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
