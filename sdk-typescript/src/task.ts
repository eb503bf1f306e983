/** A handle on one task: its id and a client. It owns nothing: losing it does nothing to the task. */
import type { AttachItem, AttachOptions } from "./attach.js";
import type { CallOptions } from "./call.js";
import type { CancelOptions } from "./cancel.js";
import type { HeelerClient } from "./client.js";
import type { DetachOptions } from "./detach.js";
import type {
  CancelResult,
  DetachResult,
  InspectResponse,
} from "./gen/heeler/v1/background_tasks_pb.js";
import { type TaskEvent, TaskEventType } from "./gen/heeler/v1/event_pb.js";
import type { BackgroundTask } from "./gen/heeler/v1/task_pb.js";
import { type Line, type LineOptions, toLines } from "./lines.js";
import type { Chunk, OutputOptions } from "./output.js";
import { present } from "./present.js";
import type { UntilOptions } from "./wait.js";

/** A task, by its id. */
export class Task {
  readonly #client: HeelerClient;

  /** @internal Use `client.task(id)`. */
  constructor(
    client: HeelerClient,
    /** Its id. */
    readonly id: string,
  ) {
    this.#client = client;
  }

  /** Its state now. */
  async snapshot(options: CallOptions = {}): Promise<BackgroundTask> {
    const target = { taskIds: [this.id] };
    const answer = await this.#client.wait(target, { ...options, timeoutMs: 0 });
    return present("task", answer.met[0] ?? answer.pending[0]);
  }

  /** Waits until it is over or, if so asked, released, for as long as it takes, and gives its state then. */
  async wait(options: CallOptions & UntilOptions = {}): Promise<BackgroundTask> {
    const { signal, deadlineMs, until } = options;
    const answer = await this.#client.wait({ taskIds: [this.id] }, { signal, deadlineMs, until });
    return present("met", answer.met[0]);
  }

  /** Waits until it is over or released, or this long; undefined: it is not yet. */
  async waitFor(
    timeoutMs: number,
    options: CallOptions & UntilOptions = {},
  ): Promise<BackgroundTask | undefined> {
    const answer = await this.#client.wait({ taskIds: [this.id] }, { ...options, timeoutMs });
    return answer.met[0];
  }

  /** Stops it and its whole tree. A task that is over already is no error: the result says so. */
  async cancel(options: CancelOptions = {}): Promise<CancelResult> {
    return await this.#client.cancelBackgroundTask(this.id, options);
  }

  /** Holds it in the foreground, with its output, until it is released. */
  attach(options: AttachOptions = {}): AsyncGenerator<AttachItem, void, undefined> {
    return this.#client.attach(this.id, options);
  }

  /** Turns it into a background task. One that is so already is no error: the result says so. */
  async detach(options: DetachOptions = {}): Promise<DetachResult> {
    const { results } = await this.#client.detach({ taskId: this.id }, options);
    return present("results", results[0]);
  }

  /** Shows it whole, with its processes, its resource use and the end of its output. */
  async inspect(
    options: CallOptions & { readonly outputTailBytes?: number | undefined } = {},
  ): Promise<InspectResponse> {
    return await this.#client.inspect(this.id, options);
  }

  /** Its events, from the first that there is record of to its end. */
  async *events(
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): AsyncGenerator<TaskEvent, void, undefined> {
    const { signal } = options;
    // A watch of an unknown task would wait for ever for it to appear.
    await this.snapshot({ signal });
    const filter = { taskIds: [this.id] };
    for await (const item of this.#client.watch({ after: 0n, filter, signal })) {
      if (item.kind === "event") {
        yield item.event;
        if (item.event.type === TaskEventType.ENDED) {
          return;
        }
      }
    }
  }

  /** Its output, in pieces as they arrived, followed to its end. */
  output(options: OutputOptions = {}): AsyncGenerator<Chunk, void, undefined> {
    return this.#client.output(this.id, options);
  }

  /** Its output line by line, followed to its end. */
  lines(options: OutputOptions & LineOptions = {}): AsyncGenerator<Line, void, undefined> {
    return toLines(this.output(options), options);
  }

  /** Forgets it and its output. It must be over. */
  async remove(options: CallOptions = {}): Promise<void> {
    await this.#client.remove({ taskIds: [this.id] }, options);
  }
}

/** The code its leader exited with; undefined: it did not exit by itself, or has not yet. */
export function exitCode(task: BackgroundTask): number | undefined {
  const result = task.outcome?.result;
  return result?.case === "exitCode" ? result.value : undefined;
}
