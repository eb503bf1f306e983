/**
 * The client: one connection, and a method for every call of the service. It adds typed errors,
 * repetition and options to the generated stub; the answers are the contract's own messages.
 *
 * A method has the name of its call, except `watch` for WatchEvents. Its first parameter is the request's
 * required `filter`, `taskId` or `name`; the other fields are options. An answer with a single field is
 * returned as that field.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";

import {
  type BackgroundTask,
  type CancelResult,
  type DetachResult,
  type InspectResponse,
  type ListResponse,
  received,
  type SpawnResponse,
  type WaitResponse,
} from "./answers.js";
import { type Address, defaultAddress, formatAddress, parseAddress } from "./connection/address.js";
import { answered } from "./connection/answered.js";
import { type CallOptions, Caller, splitOptions } from "./connection/call.js";
import type { Credentials } from "./connection/credentials.js";
import { present, toHeelerError } from "./connection/failure.js";
import { startDaemon } from "./connection/start.js";
import { checkMilliseconds, toDuration } from "./connection/time.js";
import { type Stub, Transport } from "./connection/transport.js";
import { NotRunningError } from "./errors.js";
import {
  type ListSessionsResponse,
  type Queue,
  type ReadOutputResponse,
  type RemoveResponse,
  type ResizeTerminalResponse,
  type SessionInfo,
  type ShutdownResponse,
  WaitRequestSchema,
  type WorkCancel,
  type WorkRequestSchema,
  type WorkResponse,
  type WriteInputResponse,
} from "./gen/heeler/v1/index.js";
import type { Filter } from "./options/filter.js";
import { toMessage } from "./options/message.js";
import type {
  CancelOptions,
  DetachOptions,
  InspectOptions,
  ListOptions,
  ListSessionsOptions,
  ReportProgressOptions,
  ResizeTerminalOptions,
  SendMessageOptions,
  ShutdownOptions,
  UpdateQueueOptions,
  WaitOptions,
  WriteInputOptions,
} from "./options/requests.js";
import type { UpdateTaskOptions } from "./options/output.js";
import { type SpawnOptions, toSpawnFields } from "./options/spec.js";
import { Session } from "./session.js";
import { attach, type AttachItem, type AttachOptions } from "./streams/attach.js";
import type { WatchItem } from "./streams/cursor.js";
import { followOutput, type FollowOptions } from "./streams/follow.js";
import type { FollowItem } from "./streams/follow-cursor.js";
import { type InputStreamOptions, TaskInput } from "./streams/input.js";
import {
  type Chunk,
  type OutputOptions,
  readChunks,
  type ReadOutputOptions,
} from "./streams/output.js";
import {
  collectRun,
  type RunItem,
  runItems,
  type RunOptions,
  type RunResult,
  type RunStreamOptions,
} from "./streams/run.js";
import { type Stream, toStream } from "./streams/stream.js";
import { watch, type WatchOptions } from "./streams/watch.js";
import { Task } from "./task.js";
import type { First } from "./work/connection.js";
import { Driver } from "./work/driver.js";
import {
  type Body,
  type HostedOptions,
  type HostOptions,
  type JoinOptions,
  runBody,
  toRegister,
} from "./work/host.js";
import { Work } from "./work/work.js";

/** A restart of the daemon takes a fraction of this. */
const DEFAULT_RETRY_FOR_MS = 5000;

/** The options of `connect`. */
export interface ConnectOptions extends Credentials {
  /**
   * `unix:/absolute/path`, `tcp:HOST:PORT` on loopback, or `tls:HOST:PORT`. By default the address in
   * `HEELER_ADDR`, else the calling user's own socket.
   */
  readonly address?: string | undefined;
  /** Time for which calls are repeated while the daemon is away: 5000 by default; 0: not at all. */
  readonly retryForMs?: number | undefined;
}

/** The options of `connectOrStart`. */
export interface ConnectOrStartOptions extends ConnectOptions {
  /** The program `heeler`. By default the one that `HEELER_BINARY` names, else that on the PATH. */
  readonly program?: string | undefined;
}

/** A connection to a daemon. It is opened again after a break, and keeps no process alive. */
export class HeelerClient implements Disposable, AsyncDisposable {
  readonly #transport: Transport;
  readonly #caller: Caller;

  private constructor(transport: Transport, retryForMs: number) {
    this.#transport = transport;
    this.#caller = new Caller(transport, retryForMs);
  }

  /** Connects to a daemon. It starts none: `connectOrStart` does. */
  static async connect(options: ConnectOptions = {}): Promise<HeelerClient> {
    const { address, retryForMs = DEFAULT_RETRY_FOR_MS } = options;
    checkMilliseconds("retryForMs", retryForMs);
    const parsed: Address = address === undefined ? defaultAddress() : parseAddress(address);
    const transport = new Transport(parsed, options);
    await transport.open();
    return new HeelerClient(transport, retryForMs);
  }

  /**
   * Connects as `connect` does. If the user's own daemon is not running, `heeler start` starts it first;
   * with an address, given or in `HEELER_ADDR`, nothing is started. The daemon outlives this process.
   */
  static async connectOrStart(options: ConnectOrStartOptions = {}): Promise<HeelerClient> {
    const { program, ...rest } = options;
    try {
      return await HeelerClient.connect(rest);
    } catch (error) {
      const isOwn = (rest.address ?? process.env["HEELER_ADDR"] ?? "") === "";
      if (!isOwn || !(error instanceof NotRunningError)) {
        throw error;
      }
      return await HeelerClient.connect({ ...rest, address: await startDaemon(program) });
    }
  }

  /** The address of the daemon. */
  get address(): string {
    return formatAddress(this.#transport.address);
  }

  /** The generated stub on the same connection, without repetition and typed errors. */
  get raw(): Stub {
    return this.#transport.stub;
  }

  /** Ends the connection and every call in progress. It ends no task. */
  close(): void {
    this.#transport.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** As `close`, and waits until the connection is closed. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#transport.closed();
  }

  /** Returns the handle of a task. It makes no call: the id may be unknown. */
  task(id: string): Task {
    return new Task(this, id);
  }

  /** Returns the handle of a session. It makes no call: the session may have no task. */
  session(id: string): Session {
    return new Session(this, id);
  }

  /** Starts a task and returns as soon as its leader runs, or as soon as it is QUEUED. */
  async spawn(options: SpawnOptions): Promise<Task> {
    const { task } = await this.spawnResponse(options);
    return this.task(present("task", task).id);
  }

  /** As `spawn`, with the task's first state and the differences between the request and the task. */
  async spawnResponse(options: SpawnOptions): Promise<SpawnResponse> {
    const fields = toSpawnFields(options);
    return await this.#caller.call("spawn", fields, fields.requestId === "" ? undefined : "always");
  }

  /**
   * Runs a command in the foreground and returns when it has finished or left the foreground. An abort
   * before that stops the command or, with `onAbort: "detach"`, detaches it.
   */
  async run(options: RunOptions): Promise<RunResult> {
    const { onStart, onOutput, maxOutputBytes, ...rest } = options;
    return await collectRun(this.runStream(rest), { onStart, onOutput, maxOutputBytes });
  }

  /** As `run`, item by item. Leaving the loop before the end is an abort. */
  runStream(options: RunStreamOptions): Stream<RunItem> {
    return toStream(options.signal, (signal) => runItems(this, { ...options, signal }));
  }

  /** Attaches to a task and streams its output until it is detached, its leader exits or it finishes. */
  attach(taskId: string, options: AttachOptions = {}): Stream<AttachItem> {
    return toStream(options.signal, (signal) =>
      attach(this.#caller, taskId, { ...options, signal }),
    );
  }

  /** Turns foreground tasks into background tasks, and returns a result for each. */
  async detach(filter: Filter, options: DetachOptions = {}): Promise<DetachResult[]> {
    return (await this.#caller.call("detach", { ...options, filter })).results;
  }

  /** Stops tasks, each with its whole tree, and returns a result for each. */
  async cancel(filter: Filter, options: CancelOptions = {}): Promise<CancelResult[]> {
    return (await this.#caller.call("cancel", { wait: true, ...options, filter })).results;
  }

  /** Stops one task. A finished task is no error: the result says so. */
  async cancelBackgroundTask(taskId: string, options: CancelOptions = {}): Promise<CancelResult> {
    const results = await this.cancel({ taskIds: [taskId] }, options);
    // With `cascade` there are results of other tasks as well.
    return present(
      "results",
      results.find(({ task }) => task?.id === taskId),
    );
  }

  /** Lists tasks, page by page: live tasks first, then newest first. */
  list(options: ListOptions = {}): Stream<BackgroundTask> {
    return toStream(options.signal, (signal) => {
      return pages(options.pageToken, async (pageToken) => {
        const page = await this.listPage({ ...options, signal, pageToken });
        return { items: page.tasks, next: page.nextPageToken };
      });
    });
  }

  /** Returns one page of tasks and the revision at which it was true. */
  async listPage(options: ListOptions = {}): Promise<ListResponse> {
    return await this.#caller.call("list", options);
  }

  /** Returns one task with its processes, its resource use and the end of its output. */
  async inspect(taskId: string, options: InspectOptions = {}): Promise<InspectResponse> {
    return await this.#caller.call("inspect", { ...options, taskId });
  }

  /** Streams events, across restarts of the daemon. */
  watch(options: WatchOptions = {}): Stream<WatchItem> {
    return toStream(options.signal, (signal) => watch(this.#caller, { ...options, signal }));
  }

  /** Waits until tasks are finished, out of the foreground, or have written a line that matches. */
  async wait(filter: Filter, options: WaitOptions = {}): Promise<WaitResponse> {
    const begun = performance.now();
    const { call, fields } = splitOptions(options);
    const request = toMessage(WaitRequestSchema, { ...fields, filter });
    const { timeoutMs } = options;
    return await this.#caller.repeat("always", call, async (stub, stubOptions) => {
      // A negative timeout is sent as it is, and refused.
      if (timeoutMs !== undefined && timeoutMs > 0) {
        const left = Math.max(timeoutMs - (performance.now() - begun), 0);
        request.timeout = toDuration("timeoutMs", left);
      }
      return received(await stub.wait(request, stubOptions));
    });
  }

  /** Reads a part of a task's output. */
  async readOutput(taskId: string, options: ReadOutputOptions = {}): Promise<ReadOutputResponse> {
    return await this.#caller.call("readOutput", { ...options, taskId });
  }

  /** Streams a task's output, in chunks as they arrived, to the end of the task. */
  output(taskId: string, options: OutputOptions = {}): Stream<Chunk> {
    return toStream(options.signal, (signal) =>
      readChunks(this.#caller, taskId, { ...options, signal }),
    );
  }

  /**
   * Streams the output of many tasks, also of tasks that start later, across restarts of the daemon. Tasks
   * take turns: none waits for the end of another one's output.
   */
  followOutput(options: FollowOptions = {}): Stream<FollowItem> {
    return toStream(options.signal, (signal) => followOutput(this.#caller, { ...options, signal }));
  }

  /** Changes the patterns that are looked for in the output of a live task. */
  async updateTask(taskId: string, options: UpdateTaskOptions): Promise<BackgroundTask> {
    const { task } = await this.#caller.call("updateTask", { ...options, taskId });
    return present("task", task);
  }

  /**
   * The stream of a worker: sends the requests and returns the responses. The first request registers a
   * hosted task or joins a task. It does not reconnect.
   */
  work(
    requests: AsyncIterable<MessageInitShape<typeof WorkRequestSchema>>,
    options: CallOptions = {},
  ): Stream<WorkResponse> {
    return toStream(options.signal, (signal) => this.#work(requests, signal));
  }

  async *#work(
    requests: AsyncIterable<MessageInitShape<typeof WorkRequestSchema>>,
    signal: AbortSignal,
  ): AsyncGenerator<WorkResponse, void, undefined> {
    this.#caller.checkOpen();
    try {
      yield* this.#caller.stub.work(requests, { signal });
    } catch (thrown) {
      throw toHeelerError(thrown, this.#caller.address);
    }
  }

  /**
   * Registers a hosted task, runs the body as its worker, and delivers the value of the body as the
   * result. Returns the finished task when the body has ended. The body begins once the task is admitted.
   *
   * A body that throws because its signals have aborted delivers `cancelled`. One that throws anything
   * else delivers `failed`, and `host` rejects with that error. The task may end before the body does, if
   * it does not react to a cancel or loses its lease; then the value of the body is dropped.
   */
  async host(options: HostOptions, body: Body): Promise<BackgroundTask> {
    const { signal } = options;
    signal?.throwIfAborted();
    const { driver, work } = await answered(signal, async (limit) => {
      return await this.#register({ ...options, signal: limit });
    });
    return await runBody(work, driver, body, signal);
  }

  /** Registers a hosted task, and returns its worker when it is RUNNING or QUEUED. */
  async register(options: HostedOptions = {}): Promise<Work> {
    return (await this.#register(options)).work;
  }

  async #register(options: HostedOptions): Promise<{ driver: Driver; work: Work }> {
    const { first, repeat } = toRegister(options);
    const driver = await Driver.start(this.#caller, first, { ...options, repeat });
    return { driver, work: new Work(driver, this.task(driver.taskId)) };
  }

  /** Joins a task that exists as its worker. */
  async join(taskId: string, options: JoinOptions = {}): Promise<Work> {
    const { takeOver = false, ...rest } = options;
    const first: First = { case: "join", value: { taskId, takeOver } };
    const driver = await Driver.start(this.#caller, first, { ...rest, repeat: "always" });
    return new Work(driver, this.task(taskId));
  }

  /** Joins the task that this process runs in. Returns undefined if it runs in none. */
  async current(options: JoinOptions = {}): Promise<Work | undefined> {
    const id = process.env["HEELER_TASK_ID"] ?? "";
    return id === "" ? undefined : await this.join(id, options);
  }

  /** Reports progress of a task. Returns the request to stop if the task is being stopped. */
  async reportProgress(
    taskId: string,
    options: ReportProgressOptions = {},
  ): Promise<WorkCancel | undefined> {
    const { cancel } = await this.#caller.call("reportProgress", { ...options, taskId });
    return cancel;
  }

  /**
   * Writes to the stdin or the terminal of a task. The answer says how much was taken. With an offset, or
   * without data, the call is safe to repeat.
   */
  async writeInput(taskId: string, options: WriteInputOptions = {}): Promise<WriteInputResponse> {
    const request = { ...options, taskId };
    const isRepeatable = options.offset !== undefined || !options.data?.length;
    return isRepeatable
      ? await this.#caller.call("writeInput", request, "always")
      : await this.#caller.call("writeInput", request);
  }

  /** Opens the stdin or the terminal of a task as a stream, which goes on across restarts of the daemon. */
  input(taskId: string, options: InputStreamOptions = {}): TaskInput {
    const { giveUpAfterMs = Infinity } = options;
    checkMilliseconds("giveUpAfterMs", giveUpAfterMs);
    const caller = new Caller(this.#transport, giveUpAfterMs);
    return new TaskInput(async (request) => {
      return await caller.call("writeInput", { ...request, taskId }, "always");
    }, options);
  }

  /** Changes the size of a task's terminal. */
  async resizeTerminal(
    taskId: string,
    options: ResizeTerminalOptions,
  ): Promise<ResizeTerminalResponse> {
    return await this.#caller.call("resizeTerminal", { ...options, taskId });
  }

  /** Puts a message into the mailbox of a task, for its worker. Returns its number. */
  async sendMessage(taskId: string, options: SendMessageOptions): Promise<bigint> {
    const request = { ...options, taskId };
    const answer = options.messageId
      ? await this.#caller.call("sendMessage", request, "always")
      : await this.#caller.call("sendMessage", request);
    return answer.number;
  }

  /** Removes finished tasks and deletes their output. */
  async remove(filter: Filter, options: CallOptions = {}): Promise<RemoveResponse> {
    return await this.#caller.call("remove", { ...options, filter });
  }

  /** Changes the settings of a queue. Running tasks are not affected. */
  async updateQueue(name: string, options: UpdateQueueOptions): Promise<Queue> {
    const { queue } = await this.#caller.call("updateQueue", { ...options, name });
    return present("queue", queue);
  }

  /** Lists the queues that have live tasks or settings other than the defaults, by name. */
  async listQueues(options: CallOptions = {}): Promise<Queue[]> {
    const { queues } = await this.#caller.call("listQueues", options);
    return queues;
  }

  /** Lists the sessions that have live tasks, by id: a page of at most 500, or the one session that is named. */
  async listSessions(options: ListSessionsOptions = {}): Promise<ListSessionsResponse> {
    return await this.#caller.call("listSessions", options);
  }

  /** Streams the sessions that have live tasks, by id, page by page. */
  sessions(options: Omit<ListSessionsOptions, "sessionId"> = {}): Stream<SessionInfo> {
    return toStream(options.signal, (signal) => {
      return pages(options.pageToken, async (pageToken) => {
        const page = await this.listSessions({ ...options, signal, pageToken });
        return { items: page.sessions, next: page.nextPageToken };
      });
    });
  }

  /** Ends the daemon. The answer comes when it begins to close. */
  async shutdown(options: ShutdownOptions = {}): Promise<ShutdownResponse> {
    return await this.#caller.call("shutdown", options);
  }
}

/** The items of one page after another. */
async function* pages<T>(
  first: string | undefined,
  load: (token: string | undefined) => Promise<{ items: readonly T[]; next: string }>,
): AsyncGenerator<T, void, undefined> {
  let token = first;
  do {
    const { items, next } = await load(token);
    yield* items;
    token = next;
  } while (token !== "");
}
