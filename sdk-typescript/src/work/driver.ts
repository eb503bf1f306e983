/**
 * Keeps the stream of a worker: it reconnects, keeps the lease, and sends again what the daemon has not
 * acknowledged.
 *
 *   Work ── report, deliver ──> outbox ──┐
 *        ── receipt, heartbeat ──────────┼──> Connection ──> daemon
 *        <── signals, messages, state ───┘
 *
 * A connection asks for the next message when it has room for it, so nothing is queued beside the
 * outbox, which is bounded.
 */
import { type BackgroundTask, received } from "../answers.js";
import { Backoff } from "../connection/backoff.js";
import type { Caller, Repeat } from "../connection/call.js";
import { isFinal, present, toHeelerError, wasConnected } from "../connection/failure.js";
import { checkMilliseconds, pause, toMilliseconds } from "../connection/time.js";
import { CancelledError, ClosedError, type HeelerError } from "../errors.js";
import {
  TaskState,
  type WorkCancel,
  WorkCancelMode,
  type WorkJoined,
  type WorkResponse,
} from "../gen/heeler/v1/index.js";
import { Change } from "./change.js";
import { Connection, type First, type NextRequest } from "./connection.js";
import { Mailbox } from "./mailbox.js";
import { type Item, Outbox } from "./outbox.js";

/** Signs of presence in the time of one lease. */
const SIGNS_PER_LEASE = 3;

/** The end of a worker: its task has finished, or the stream cannot be kept. */
export type Over =
  | { readonly kind: "finished"; readonly task: BackgroundTask }
  | { readonly kind: "failed"; readonly error: HeelerError };

/** The options of a worker's connection. */
export interface DriverOptions {
  /** Maximum time without a daemon. */
  readonly giveUpAfterMs?: number | undefined;
  /** Ends the attempts to open the first stream. */
  readonly signal?: AbortSignal | undefined;
  /** The condition under which the first message is sent again. */
  readonly repeat: Repeat;
}

export class Driver {
  readonly #caller: Caller;
  readonly #change = new Change();
  readonly #outbox = new Outbox();
  readonly #stopping = new AbortController();
  readonly #cancelled = new AbortController();
  readonly #left = new AbortController();
  readonly mailbox = new Mailbox(this.#change);
  /** The end of the line of items that wait for room. */
  #line: Promise<unknown> = Promise.resolve();
  /** The sequence that was sent last on the present connection. */
  #sent = 0n;
  #sign: "none" | "presence" | "activity" = "none";
  #taskId = "";
  #workerId = "";
  #leaseMs: number | undefined;
  #isAdmitted = false;
  #isDelivered = false;
  #isConnected = false;
  #isLeaving = false;
  #cancel: WorkCancel | undefined;
  #over: Over | undefined;

  private constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Opens the first stream, and keeps it in the background from then on. */
  static async start(caller: Caller, first: First, options: DriverOptions): Promise<Driver> {
    const { signal, giveUpAfterMs = Infinity, repeat } = options;
    checkMilliseconds("giveUpAfterMs", giveUpAfterMs);
    const driver = new Driver(caller);
    const connection = await caller.repeat(repeat, { signal }, async () => {
      return await driver.#open(first, signal);
    });
    void driver.#run(connection, new Backoff(giveUpAfterMs));
    return driver;
  }

  get taskId(): string {
    return this.#taskId;
  }

  /** True if the task has a lease, and so nothing but its worker. */
  get isHosted(): boolean {
    return this.#leaseMs !== undefined;
  }

  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  get cancelled(): AbortSignal {
    return this.#cancelled.signal;
  }

  get isAdmitted(): boolean {
    return this.#isAdmitted;
  }

  get hasResult(): boolean {
    return this.#isDelivered || this.#outbox.hasResult;
  }

  get cancelRequest(): WorkCancel | undefined {
    return this.#cancel;
  }

  get over(): Over | undefined {
    return this.#over;
  }

  /** Waits until a condition holds, or the worker's stream is over. */
  async until(condition: () => boolean, signal?: AbortSignal): Promise<void> {
    while (!condition() && this.#over === undefined) {
      await this.#change.next(signal);
    }
  }

  /**
   * Takes an item, in the order of the calls, once there is room for it. Returns its number. After the end
   * it is dropped.
   */
  async send(item: Item): Promise<bigint> {
    const sent = this.#line.then(async () => {
      await this.until(() => this.#outbox.hasRoom);
      const sequence = this.#over === undefined ? this.#outbox.push(item) : 0n;
      this.#change.notify();
      return sequence;
    });
    this.#line = sent;
    return await sent;
  }

  /** True if an item is durable. */
  isAcknowledged(sequence: bigint): boolean {
    return sequence > 0n && this.#outbox.acknowledged >= sequence;
  }

  /** Says that the work goes on. */
  beat(): void {
    this.#sign = "activity";
    this.#change.notify();
  }

  /** Asks the work to stop now, on behalf of this process. */
  abort(reason: unknown): void {
    this.#stopping.abort(reason);
    this.#cancelled.abort(reason);
  }

  /** Leaves the task when the daemon has everything, or when the signal aborts. */
  async leave(limit: AbortSignal): Promise<void> {
    this.#isLeaving = true;
    this.#change.notify();
    try {
      await this.until(() => !this.#isConnected && this.#isEmpty, limit);
    } catch {
      // The daemon is away, or too slow.
    }
    this.drop();
  }

  /** Leaves the task. What was not acknowledged is dropped. */
  drop(): void {
    this.#end({ kind: "failed", error: new ClosedError("the worker has left its task") });
    this.#left.abort();
  }

  get #isEmpty(): boolean {
    return this.#outbox.isEmpty && !this.mailbox.hasReceipt;
  }

  async #run(connection: Connection, backoff: Backoff): Promise<void> {
    for (let open: Connection | undefined = connection; open !== undefined;) {
      const failure = await this.#serve(open);
      backoff.reset();
      open = failure === undefined ? undefined : await this.#reconnect(failure, backoff);
    }
  }

  /** Serves one stream. Returns the error that broke it, or undefined after the end. */
  async #serve(connection: Connection): Promise<HeelerError | undefined> {
    const leave = (): void => {
      connection.close();
    };
    this.#left.signal.addEventListener("abort", leave, { once: true });
    const signs = this.#keepLease();
    this.#isConnected = true;
    try {
      connection.start();
      while (this.#over === undefined) {
        this.#take(await connection.receive());
      }
      return undefined;
    } catch (thrown) {
      return this.#over === undefined ? toHeelerError(thrown, this.#caller.address) : undefined;
    } finally {
      clearInterval(signs);
      this.#isConnected = false;
      this.#left.signal.removeEventListener("abort", leave);
      connection.close();
    }
  }

  #keepLease(): NodeJS.Timeout | undefined {
    if (this.#leaseMs === undefined) {
      return undefined;
    }
    return setInterval(() => {
      if (this.#sign === "none") {
        this.#sign = "presence";
        this.#change.notify();
      }
    }, this.#leaseMs / SIGNS_PER_LEASE);
  }

  /** Joins the task again until that works. Returns undefined if it cannot, and after the end. */
  async #reconnect(failure: HeelerError, backoff: Backoff): Promise<Connection | undefined> {
    const join = { taskId: this.#taskId, workerId: this.#workerId };
    const { signal } = this.#left;
    let error = failure;
    for (let tookMs = 0; ;) {
      const delay = backoff.afterFailure(tookMs, wasConnected(error));
      if (delay === undefined || isFinal(error) || error.is("WORKER_REPLACED")) {
        this.#end({ kind: "failed", error });
        return undefined;
      }
      let begun = 0;
      try {
        await pause(delay, signal);
        begun = performance.now();
        return await this.#open({ case: "join", value: join }, signal);
      } catch (thrown) {
        if (signal.aborted) {
          return undefined;
        }
        tookMs = performance.now() - begun;
        error = toHeelerError(thrown, this.#caller.address);
      }
    }
  }

  async #open(first: First, signal: AbortSignal | undefined): Promise<Connection> {
    const stream = { next: this.#next, change: this.#change };
    const { connection, joined } = await Connection.open(this.#caller, first, stream, signal);
    this.#joined(joined);
    return connection;
  }

  #joined(joined: WorkJoined): void {
    const task = present("task", joined.task);
    this.#taskId = task.id;
    this.#workerId = joined.workerId;
    this.#leaseMs = toMilliseconds(joined.lease);
    this.#isAdmitted ||= isBegun(task.state);
    this.#sent = joined.acknowledgedSequence;
    this.#acknowledged(joined.acknowledgedSequence);
    // A receipt may have been lost with the last connection.
    this.mailbox.repeatReceipt();
  }

  /** The next message to send: receipts first, so that the mailbox does not fill up. */
  readonly #next: NextRequest = () => {
    const receipt = this.mailbox.takeReceipt();
    if (receipt !== undefined) {
      return { item: { case: "receipt", value: { number: receipt } } };
    }
    const next = this.#outbox.after(this.#sent);
    if (next !== undefined) {
      this.#sent = next.sequence;
      return next;
    }
    if (this.#isLeaving && this.#isEmpty) {
      return "end";
    }
    const sign = this.#sign;
    this.#sign = "none";
    return sign === "none"
      ? undefined
      : { item: { case: "heartbeat", value: { leaseOnly: sign === "presence" } } };
  };

  #take({ item }: WorkResponse): void {
    switch (item.case) {
      case "admitted":
        this.#isAdmitted = true;
        break;
      case "cancel":
        this.#stop(item.value);
        break;
      case "message":
        this.mailbox.put(item.value);
        break;
      case "acknowledged":
        this.#acknowledged(item.value.sequence);
        break;
      case "ended":
        this.#end({ kind: "finished", task: received(present("task", item.value.task)) });
        break;
      // Undefined: a message of a newer contract.
      case "joined":
      case undefined:
        break;
    }
    this.#change.notify();
  }

  #acknowledged(sequence: bigint): void {
    this.#isDelivered = this.#outbox.acknowledge(sequence) || this.#isDelivered;
  }

  #stop(request: WorkCancel): void {
    this.#cancel = request;
    const reason = new CancelledError(this.#taskId, request);
    this.#stopping.abort(reason);
    if (request.mode !== WorkCancelMode.SOFT) {
      this.#cancelled.abort(reason);
    }
  }

  #end(over: Over): void {
    this.#over ??= over;
    const cause = over.kind === "failed" ? { cause: over.error } : {};
    this.abort(new CancelledError(this.#taskId, this.#cancel, cause));
    this.mailbox.close();
    this.#change.notify();
  }
}

/** True if the work of a task in this state may begin. A finished task has no more work. */
function isBegun(state: TaskState): boolean {
  switch (state) {
    case TaskState.STARTING:
    case TaskState.RUNNING:
    case TaskState.STOPPING:
      return true;
    case TaskState.UNSPECIFIED:
    case TaskState.QUEUED:
    case TaskState.COMPLETED:
    case TaskState.FAILED:
    case TaskState.CANCELLED:
    case TaskState.TIMED_OUT:
    case TaskState.LOST:
      return false;
  }
}
