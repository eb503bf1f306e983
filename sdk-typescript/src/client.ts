/**
 * The client: one connection, and a method for every call of the service. It adds typed errors,
 * repetition and options to the generated stub; the answers are the contract's own messages.
 */
import { create } from "@bufbuild/protobuf";

import { type Address, defaultAddress, formatAddress, parseAddress } from "./address.js";
import { attach, type AttachItem, type AttachOptions } from "./attach.js";
import { type CallOptions, Caller } from "./call.js";
import { type CancelOptions, type CancelTarget, toCancelRequest } from "./cancel.js";
import { choose } from "./choice.js";
import type { Credentials } from "./credentials.js";
import type { WatchItem } from "./cursor.js";
import { type DetachOptions, type DetachTarget, toDetachRequest } from "./detach.js";
import { type Filter, toFilter } from "./filter.js";
import {
  type CancelResponse,
  type CancelResult,
  type DetachResponse,
  InspectRequestSchema,
  type InspectResponse,
  type ListResponse,
  type Queue,
  type ReadOutputResponse,
  type RemoveRequest,
  RemoveRequestSchema,
  type RemoveResponse,
  ShutdownRequestSchema,
  type ShutdownResponse,
  ShutdownTasks,
  type SpawnResponse,
  TaskIdsSchema,
  type WaitResponse,
} from "./gen/heeler/v1/background_tasks_pb.js";
import type { BackgroundTask } from "./gen/heeler/v1/task_pb.js";
import { listAll, listPage, type ListOptions } from "./list.js";
import {
  type Chunk,
  type OutputOptions,
  readChunks,
  readOutput,
  type ReadOutputOptions,
} from "./output.js";
import { present } from "./present.js";
import { listQueues, type QueueOptions, updateQueue } from "./queue.js";
import {
  run,
  type RunItem,
  type RunOptions,
  type RunResult,
  runStream,
  type RunStreamOptions,
} from "./run.js";
import { type SpawnOptions, toSpawnRequest } from "./spawn.js";
import { Task } from "./task.js";
import { checkNumber, toOptionalDuration } from "./time.js";
import { type Stub, Transport } from "./transport.js";
import { wait, type WaitOptions, type WaitTarget } from "./wait.js";
import { watch, type WatchOptions } from "./watch.js";

/** A restart takes a fraction of this. */
const DEFAULT_RETRY_FOR_MS = 5000;

/** Where to connect, what to show there, and how patient to be. */
export interface ConnectOptions extends Credentials {
  /**
   * `unix:/absolute/path`, `tcp:HOST:PORT` on loopback, or `tls:HOST:PORT`. By default what
   * `HEELER_ADDR` says, else the calling user's own socket.
   */
  readonly address?: string | undefined;
  /** How long calls are repeated while the daemon is away: 5000 by default; 0: not at all. */
  readonly retryForMs?: number | undefined;
}

/** Which tasks to forget: these, all or none; or every finished one that matches. */
export type RemoveTarget = { readonly taskIds: readonly string[] } | { readonly finished: Filter };

/** How the daemon is to end. */
export interface ShutdownOptions extends CallOptions {
  /** `leaveRunning` (the default): the next daemon takes them back. `stop`: all are stopped first. */
  readonly tasks?: "leaveRunning" | "stop" | undefined;
  /** Overrides each task's own grace. Only with stop. */
  readonly graceMs?: number | undefined;
  /** Why; kept with each task that is stopped. */
  readonly reason?: string | undefined;
  /** Who asks; kept with each task that is stopped. */
  readonly actor?: string | undefined;
}

const SHUTDOWN_TASKS = {
  leaveRunning: ShutdownTasks.LEAVE_RUNNING,
  stop: ShutdownTasks.STOP,
} as const;

/** A connection to a daemon. It comes back by itself when it breaks, and keeps no process alive. */
export class HeelerClient implements Disposable {
  readonly #transport: Transport;
  readonly #caller: Caller;

  private constructor(transport: Transport, retryForMs: number) {
    this.#transport = transport;
    this.#caller = new Caller(transport, retryForMs);
  }

  /** Connects to a daemon. Starts none. */
  static async connect(options: ConnectOptions = {}): Promise<HeelerClient> {
    const { address, retryForMs = DEFAULT_RETRY_FOR_MS } = options;
    checkNumber("retryForMs", retryForMs);
    const parsed: Address = address === undefined ? defaultAddress() : parseAddress(address);
    const transport = new Transport(parsed, options);
    await transport.open();
    return new HeelerClient(transport, retryForMs);
  }

  /** Where the daemon is. */
  get address(): string {
    return formatAddress(this.#transport.address);
  }

  /** The generated stub, on the same connection: no repetition, no typed errors. */
  get stub(): Stub {
    return this.#transport.stub;
  }

  /** Ends the connection, and with it every call under way. No task is ended by it. */
  close(): void {
    this.#transport.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Starts a task and returns when its leader runs, or when it is QUEUED for its turn. */
  async spawn(options: SpawnOptions): Promise<Task> {
    const { task } = await this.spawnResponse(options);
    return this.task(present("task", task).id);
  }

  /** As `spawn`, with the task's first state, its revision, and what was done differently from the request. */
  async spawnResponse(options: SpawnOptions): Promise<SpawnResponse> {
    const request = toSpawnRequest(options);
    const repeat = request.requestId === "" ? "ifUnheard" : "always";
    return await this.#caller.call(repeat, options, (stub, call) => stub.spawn(request, call));
  }

  /**
   * Runs a command in the foreground and returns when it is released: when it is over, or goes on in the
   * background. An abort before that stops the command; with `onAbort: "detach"`, it detaches it.
   */
  async run(options: RunOptions): Promise<RunResult> {
    return await run(this, options);
  }

  /** As `run`, item by item as they come. Leaving the loop before the release is an abort. */
  runStream(options: RunStreamOptions): AsyncGenerator<RunItem, void, undefined> {
    return runStream(this, options);
  }

  /** Holds a task in the foreground, with its output, until it is released. */
  attach(taskId: string, options: AttachOptions = {}): AsyncGenerator<AttachItem, void, undefined> {
    return attach(this.#caller, taskId, options);
  }

  /** Turns foreground tasks into background ones. */
  async detach(target: DetachTarget, options: DetachOptions = {}): Promise<DetachResponse> {
    const request = toDetachRequest(target, options);
    return await this.#caller.call("always", options, (stub, call) => stub.detach(request, call));
  }

  /** The handle of a task. Nothing is asked: the id may be unknown. */
  task(id: string): Task {
    return new Task(this, id);
  }

  /** Stops one task and its whole tree. One that is over already is no error: the result says so. */
  async cancelBackgroundTask(taskId: string, options: CancelOptions = {}): Promise<CancelResult> {
    const { results } = await this.cancel({ taskId }, options);
    // With a cascade there are others; ours is the one with our id.
    const own = results.find((result) => result.task?.id === taskId);
    return present("results", own);
  }

  /** Stops every task that is meant. */
  async cancel(target: CancelTarget, options: CancelOptions = {}): Promise<CancelResponse> {
    const request = toCancelRequest(target, options);
    return await this.#caller.call("always", options, (stub, call) => stub.cancel(request, call));
  }

  /** Every task that is asked for, page after page: live ones first, then newest first. */
  list(options: ListOptions = {}): AsyncGenerator<BackgroundTask, void, undefined> {
    return listAll(this.#caller, options);
  }

  /** One page of tasks, and the revision at which it was true. */
  async listPage(options: ListOptions = {}): Promise<ListResponse> {
    return await listPage(this.#caller, options);
  }

  /** One task whole, with its processes, its resource use and the end of its output. */
  async inspect(
    taskId: string,
    options: CallOptions & { readonly outputTailBytes?: number | undefined } = {},
  ): Promise<InspectResponse> {
    const { outputTailBytes } = options;
    const request = create(InspectRequestSchema, { taskId, outputTailBytes });
    return await this.#caller.call("always", options, (stub, call) => stub.inspect(request, call));
  }

  /** Every event from a point on, across every restart of the daemon. */
  watch(options: WatchOptions = {}): AsyncGenerator<WatchItem, void, undefined> {
    return watch(this.#caller, options);
  }

  /** Waits for tasks to be over, or to be released. */
  async wait(target: WaitTarget, options: WaitOptions = {}): Promise<WaitResponse> {
    return await wait(this.#caller, target, options);
  }

  /** One piece of a task's output. */
  async readOutput(taskId: string, options: ReadOutputOptions = {}): Promise<ReadOutputResponse> {
    return await readOutput(this.#caller, taskId, options);
  }

  /** A task's output, in pieces as they arrived, followed to its end. */
  output(taskId: string, options: OutputOptions = {}): AsyncGenerator<Chunk, void, undefined> {
    return readChunks(this.#caller, taskId, options);
  }

  /** Forgets finished tasks and their output. It is repeated only while it cannot have been heard. */
  async remove(target: RemoveTarget, options: CallOptions = {}): Promise<RemoveResponse> {
    const request = create(RemoveRequestSchema, { target: toRemoveTarget(target) });
    return await this.#caller.call("ifUnheard", options, (stub, call) =>
      stub.remove(request, call),
    );
  }

  /** Changes a queue, which need not have been used before. What runs is not touched. */
  async updateQueue(name: string, options: QueueOptions): Promise<Queue> {
    return await updateQueue(this.#caller, name, options);
  }

  /** The queues that have live tasks, or were changed, by name. */
  async listQueues(options: CallOptions = {}): Promise<Queue[]> {
    return await listQueues(this.#caller, options);
  }

  /** Ends the daemon. The answer comes as it begins to close: it is gone a moment later. */
  async shutdown(options: ShutdownOptions = {}): Promise<ShutdownResponse> {
    const request = create(ShutdownRequestSchema, {
      tasks: choose("tasks", SHUTDOWN_TASKS, options.tasks ?? "leaveRunning"),
      grace: toOptionalDuration("graceMs", options.graceMs),
      reason: options.reason ?? "",
      actor: options.actor ?? "",
    });
    // Not repeated until somebody hears it, for that would be the next daemon.
    return await this.#caller.call("never", options, (stub, call) => stub.shutdown(request, call));
  }
}

function toRemoveTarget(target: RemoveTarget): RemoveRequest["target"] {
  if ("finished" in target) {
    return { case: "finished", value: toFilter(target.finished) };
  }
  return { case: "tasks", value: create(TaskIdsSchema, { taskIds: [...target.taskIds] }) };
}
