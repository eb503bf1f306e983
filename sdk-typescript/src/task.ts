/** A handle on one task: its id and a client. It owns nothing: dropping it has no effect on the task. */
import type {
  BackgroundTask,
  CancelResult,
  DetachResult,
  InspectResponse,
  TaskEvent,
} from "./answers.js";
import type { HeelerClient } from "./client.js";
import type { CallOptions } from "./connection/call.js";
import { present } from "./connection/failure.js";
import { SurvivedError } from "./errors.js";
import { type MatchedLine, TaskEventType } from "./gen/heeler/v1/index.js";
import type {
  CancelOptions,
  DetachOptions,
  InspectOptions,
  ResizeTerminalOptions,
  SendMessageOptions,
  UntilOptions,
} from "./options/requests.js";
import type { SearchOptions, UpdateTaskOptions } from "./options/output.js";
import type { AttachItem, AttachOptions } from "./streams/attach.js";
import type { InputStreamOptions, TaskInput } from "./streams/input.js";
import { type Line, type LineOptions, toLines } from "./streams/lines.js";
import type { Chunk, OutputOptions } from "./streams/output.js";
import { type Stream, toStream } from "./streams/stream.js";

/** A task, by its id. */
export class Task implements AsyncDisposable {
  readonly #client: HeelerClient;

  /** @internal Use `client.task(id)`. */
  constructor(
    client: HeelerClient,
    readonly id: string,
  ) {
    this.#client = client;
  }

  /** Returns the present state. */
  async get(options: CallOptions = {}): Promise<BackgroundTask> {
    const { met, pending } = await this.#client.wait(this.#self, { ...options, timeoutMs: 0 });
    return present("task", met[0] ?? pending[0]);
  }

  /** Waits until the task is finished or, on request, out of the foreground. */
  async wait(options: CallOptions & UntilOptions = {}): Promise<BackgroundTask> {
    const { met } = await this.#client.wait(this.#self, options);
    return present("met", met[0]);
  }

  /** As `wait`, for at most this long. Returns undefined if the time passes first. */
  async waitFor(
    timeoutMs: number,
    options: CallOptions & UntilOptions = {},
  ): Promise<BackgroundTask | undefined> {
    const { met } = await this.#client.wait(this.#self, { ...options, timeoutMs });
    return met[0];
  }

  /**
   * Waits for a line of output that matches, which may be there already. Returns undefined if the task ends
   * without one, or if the time passes first.
   */
  async waitForLine(
    match: SearchOptions,
    options: CallOptions & { readonly timeoutMs?: number | undefined } = {},
  ): Promise<MatchedLine | undefined> {
    const wait = { ...options, until: "matched", match } as const;
    const { matches } = await this.#client.wait(this.#self, wait);
    return matches[0]?.line;
  }

  /** Changes the patterns that are looked for in the output. */
  async update(options: UpdateTaskOptions): Promise<BackgroundTask> {
    return await this.#client.updateTask(this.id, options);
  }

  /** Stops the task and its whole tree. A finished task is no error: the result says so. */
  async cancel(options: CancelOptions = {}): Promise<CancelResult> {
    return await this.#client.cancelBackgroundTask(this.id, options);
  }

  /** Attaches to the task and streams its output. */
  attach(options: AttachOptions = {}): Stream<AttachItem> {
    return this.#client.attach(this.id, options);
  }

  /** Turns the task into a background task. If it is one already, the result says so. */
  async detach(options: DetachOptions = {}): Promise<DetachResult> {
    const [result] = await this.#client.detach(this.#self, options);
    return present("results", result);
  }

  /** Returns the task with its processes, its resource use and the end of its output. */
  async inspect(options: InspectOptions = {}): Promise<InspectResponse> {
    return await this.#client.inspect(this.id, options);
  }

  /** Streams the task's events, from the first that is kept to ENDED. */
  events(options: { readonly signal?: AbortSignal | undefined } = {}): Stream<TaskEvent> {
    return toStream(options.signal, (signal) => this.#eventsToEnd(signal));
  }

  async *#eventsToEnd(signal: AbortSignal): AsyncGenerator<TaskEvent, void, undefined> {
    // A watch of an unknown task would wait for ever.
    await this.get({ signal });
    for await (const item of this.#client.watch({ after: 0n, filter: this.#self, signal })) {
      if (item.kind === "event") {
        yield item.event;
        if (item.event.type === TaskEventType.ENDED) {
          return;
        }
      }
    }
  }

  /** Streams the output, in chunks as they arrived, to the end of the task. */
  output(options: OutputOptions = {}): Stream<Chunk> {
    return this.#client.output(this.id, options);
  }

  /** Streams the output line by line, to the end of the task. */
  lines(options: OutputOptions & LineOptions = {}): Stream<Line> {
    const { maxLineBytes, ...rest } = options;
    return toStream(options.signal, (signal) =>
      toLines(this.output({ ...rest, signal }), { maxLineBytes }),
    );
  }

  /** Opens the stdin or the terminal of the task as a stream of Node. */
  input(options: InputStreamOptions = {}): TaskInput {
    return this.#client.input(this.id, options);
  }

  /** Changes the size of the task's terminal. */
  async resizeTerminal(options: ResizeTerminalOptions): Promise<void> {
    await this.#client.resizeTerminal(this.id, options);
  }

  /** Puts a message into the mailbox of the task, for its worker. Returns its number. */
  async sendMessage(options: SendMessageOptions): Promise<bigint> {
    return await this.#client.sendMessage(this.id, options);
  }

  /** Removes the task, which must be finished, and deletes its output. */
  async remove(options: CallOptions = {}): Promise<void> {
    await this.#client.remove(this.#self, options);
  }

  /**
   * Ends the scope of `await using task = …`: stops the task with its whole tree, and throws a
   * SurvivedError if processes of it still exist after 10 s of killing.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    const { task } = await this.cancel();
    if (task?.stop?.proof?.result.case === "survivors") {
      throw new SurvivedError(task);
    }
  }

  get #self(): { readonly taskIds: readonly string[] } {
    return { taskIds: [this.id] };
  }
}
