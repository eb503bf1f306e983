/** The handle of a worker: its requests to stop, its progress, its messages and its result. */
import type { BackgroundTask } from "../answers.js";
import type { TaskMessage, WorkCancel, WorkerResult } from "../gen/heeler/v1/index.js";
import type { ProgressOptions } from "../options/requests.js";
import { type Stream, toStream } from "../streams/stream.js";
import type { Task } from "../task.js";
import type { Driver } from "./driver.js";
import { Reporter, toUpdates } from "./progress.js";
import { type BodyResult, toResult } from "./result.js";

/** Time for the daemon to take what is left when a worker leaves; the rest is dropped. */
const LEAVE_LIMIT_MS = 5000;

/**
 * The worker of one task.
 *
 * The connection is kept by itself, across restarts of the daemon, and so is the lease of a hosted task.
 * That is no sign of activity: a worker that hangs becomes stale. A report and a heartbeat are.
 */
export class Work implements AsyncDisposable {
  readonly #driver: Driver;
  /** The handle of the task. */
  readonly task: Task;
  /** Reports progress, which counts as activity. */
  readonly progress: Reporter;

  /** @internal Use `client.host`, `client.register`, `client.join` or `client.current`. */
  constructor(driver: Driver, task: Task) {
    this.#driver = driver;
    this.task = task;
    this.progress = new Reporter(async (options) => {
      await this.report(options);
    });
  }

  /**
   * Aborts when the task is asked to stop: finish the present tool call, begin no new one, and return
   * a result. The reason is a CancelledError.
   */
  get stopping(): AbortSignal {
    return this.#driver.stopping;
  }

  /**
   * Aborts when the work must stop now: the soft phase of a stop is over, or the task has ended. The
   * reason is a CancelledError.
   */
  get signal(): AbortSignal {
    return this.#driver.cancelled;
  }

  /** The latest request to stop, with its reason and its deadline. */
  get cancelRequest(): WorkCancel | undefined {
    return this.#driver.cancelRequest;
  }

  /**
   * Reports several changes of progress at once. It resolves when the change is taken, which waits only
   * if the daemon is slow or away; it is sent again until the daemon has acknowledged it. Long texts are
   * cut. After the end of the task it does nothing.
   */
  async report(options: ProgressOptions): Promise<void> {
    const updates = toUpdates(options);
    await Promise.all(
      updates.map(async (value) => {
        await this.#driver.send({ case: "progress", value });
      }),
    );
  }

  /** Says that the work goes on, which counts as activity. */
  heartbeat(): void {
    this.#driver.beat();
  }

  /**
   * Streams the messages to the task, to its end. A message is received once it is handed out, and is
   * handed out once, in all streams together.
   */
  messages(options: { readonly signal?: AbortSignal | undefined } = {}): Stream<TaskMessage> {
    return toStream(options.signal, (signal) => this.#take(signal));
  }

  async *#take(signal: AbortSignal): AsyncGenerator<TaskMessage, void, undefined> {
    for (let message; (message = await this.#driver.mailbox.take(signal)) !== undefined;) {
      yield message;
    }
  }

  /** Waits until a queued task may begin. Returns the task if it has ended instead. */
  async admitted(): Promise<BackgroundTask | undefined> {
    const driver = this.#driver;
    await driver.until(() => driver.isAdmitted);
    return driver.isAdmitted ? undefined : this.#finished();
  }

  /**
   * Delivers the result, and resolves when it is durable. It ends a hosted task; the processes of any
   * other task go on until they exit. If the task has ended before, the result is dropped.
   */
  async deliver(result: BodyResult): Promise<void> {
    await this.#deliver(toResult(result));
  }

  /** Delivers the result of a hosted task, and returns the finished task. */
  async finish(result: BodyResult): Promise<BackgroundTask> {
    await this.deliver(result);
    return await this.ended();
  }

  /** Waits for the end of the task. */
  async ended(): Promise<BackgroundTask> {
    await this.#driver.until(() => false);
    return this.#finished();
  }

  /**
   * Leaves the task when the daemon has all reports; what it has not taken within 5 s is dropped. A hosted
   * task without a result gets one, `cancelled`: without a worker it would be LOST after its lease.
   */
  async leave(): Promise<void> {
    const driver = this.#driver;
    if (driver.over !== undefined) {
      return;
    }
    if (driver.isHosted && !driver.hasResult) {
      const text = "the worker left before it delivered a result";
      void driver.send({ case: "result", value: toResult({ status: "cancelled", text }) });
    }
    await driver.leave(AbortSignal.timeout(LEAVE_LIMIT_MS));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.leave();
  }

  async #deliver(value: WorkerResult): Promise<void> {
    const driver = this.#driver;
    const sequence = await driver.send({ case: "result", value });
    await driver.until(() => driver.isAcknowledged(sequence));
    if (!driver.isAcknowledged(sequence)) {
      // Throws unless the task has finished.
      this.#finished();
    }
  }

  #finished(): BackgroundTask {
    const { over } = this.#driver;
    if (over?.kind === "finished") {
      return over.task;
    }
    throw over?.error ?? new Error("the worker is not over");
  }
}
