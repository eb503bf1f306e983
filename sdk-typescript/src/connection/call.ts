/**
 * Unary calls: typed errors, repetition while the daemon is away, an abort signal and a deadline.
 *
 * REPEAT lists every unary call of the service, so a new one does not compile until its entry is there.
 */
import type { MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type CallOptions as StubOptions } from "@connectrpc/connect";

import type { Answer } from "../answers.js";
import { ClosedError, DeadlineError, type HeelerError, RefusedError } from "../errors.js";
import { BackgroundTasks } from "../gen/heeler/v1/index.js";
import { type FieldOptions, toMessage } from "../options/message.js";
import type { Address } from "./address.js";
import { Backoff } from "./backoff.js";
import { toHeelerError, wasConnected } from "./failure.js";
import { checkMilliseconds, pause, timerMs } from "./time.js";
import type { Stub, Transport } from "./transport.js";

/** The options of any call. */
export interface CallOptions {
  /** Ends the call, never a task. The call then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Maximum time for the call in all, repetitions included. By default no limit. */
  readonly deadlineMs?: number | undefined;
}

type Methods = typeof BackgroundTasks.method;

/** The name of a unary call, in the client as in the stub. */
export type UnaryName = {
  [N in keyof Methods]: Methods[N]["methodKind"] extends "unary" ? N : never;
}[keyof Methods];

type RequestFields<N extends UnaryName> = FieldOptions<MessageShape<Methods[N]["input"]>>;
type AnswerTo<N extends UnaryName> = Answer<MessageShape<Methods[N]["output"]>>;

/** The condition under which a failed call is repeated while the daemon is away. */
export type Repeat = "always" | "ifNotReceived" | "never";

const REPEAT: Readonly<Record<UnaryName, Repeat>> = {
  // A Spawn with a request id overrides this: the daemon recognises the request.
  spawn: "ifNotReceived",
  detach: "always",
  cancel: "always",
  list: "always",
  inspect: "always",
  wait: "always",
  readOutput: "always",
  // A write with an offset, or without data, overrides this.
  writeInput: "ifNotReceived",
  resizeTerminal: "always",
  // A second report would add its blocks again.
  reportProgress: "ifNotReceived",
  // A message with an id overrides this.
  sendMessage: "ifNotReceived",
  // A second Remove is refused with TASK_NOT_FOUND after the first one succeeded.
  remove: "ifNotReceived",
  updateTask: "always",
  updateQueue: "always",
  listQueues: "always",
  listSessions: "always",
  // A repeated Shutdown would end the next daemon.
  shutdown: "never",
};

/** The options of a request apart from those of its call. */
export function splitOptions<T extends CallOptions>(
  options: T,
): { call: CallOptions; fields: Omit<T, keyof CallOptions> } {
  const { signal, deadlineMs, ...fields } = options;
  return { call: { signal, deadlineMs }, fields };
}

/** Makes calls on one connection. */
export class Caller {
  constructor(
    private readonly transport: Transport,
    private readonly retryForMs: number,
  ) {}

  get stub(): Stub {
    return this.transport.stub;
  }

  get address(): Address {
    return this.transport.address;
  }

  /** Throws if the client is closed. A broken connection is then no reason to open another. */
  checkOpen(): void {
    if (this.transport.isClosed) {
      throw new ClosedError("the client is closed");
    }
  }

  /** Makes a unary call whose request has these options. */
  async call<N extends UnaryName>(
    name: N,
    options: CallOptions & RequestFields<N>,
    repeat = REPEAT[name],
  ): Promise<AnswerTo<N>> {
    const { call, fields } = splitOptions(options);
    const input: Methods[N]["input"] = BackgroundTasks.method[name].input;
    const request = toMessage(input, fields as RequestFields<N>);
    return await this.repeat(repeat, call, async (stub, stubOptions) => {
      const method = stub[name] as (request: unknown, options: StubOptions) => Promise<AnswerTo<N>>;
      return await method(request, stubOptions);
    });
  }

  /** Makes an attempt and, if the call may be repeated, further ones. */
  async repeat<T>(
    repeat: Repeat,
    options: CallOptions,
    attempt: (stub: Stub, options: StubOptions) => Promise<T>,
  ): Promise<T> {
    const { signal } = options;
    const deadline = new Deadline(options.deadlineMs);
    const backoff = new Backoff(this.retryForMs);
    let failure: HeelerError | undefined;
    for (;;) {
      signal?.throwIfAborted();
      this.checkOpen();
      deadline.check(failure);
      const begun = performance.now();
      try {
        return await attempt(this.stub, deadline.limit(signal));
      } catch (thrown) {
        signal?.throwIfAborted();
        this.checkOpen();
        failure = deadline.explain(thrown, toHeelerError(thrown, this.address));
      }
      if (!mayRepeat(repeat, failure)) {
        throw failure;
      }
      const delay = backoff.afterFailure(performance.now() - begun, wasConnected(failure));
      if (delay === undefined) {
        throw failure;
      }
      await pause(Math.min(delay, deadline.left() ?? delay), signal);
    }
  }
}

function mayRepeat(repeat: Repeat, failure: HeelerError): boolean {
  switch (repeat) {
    case "always":
      return failure.isTransient;
    case "ifNotReceived":
      return failure.wasNotReceived;
    case "never":
      return false;
  }
}

/** The deadline of a call, if it has one. */
class Deadline {
  readonly #end: number | undefined;

  constructor(private readonly ms: number | undefined) {
    if (ms !== undefined) {
      checkMilliseconds("deadlineMs", ms);
      if (timerMs(ms) !== undefined) {
        this.#end = performance.now() + Math.max(ms, 0);
      }
    }
  }

  /** The time left; undefined: no limit. */
  left(): number | undefined {
    return this.#end === undefined ? undefined : Math.max(this.#end - performance.now(), 0);
  }

  /** The options of the stub. */
  limit(signal: AbortSignal | undefined): StubOptions {
    const timeoutMs = this.left();
    return {
      ...(signal === undefined ? {} : { signal }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    };
  }

  /** Throws once the deadline has passed. */
  check(failure: HeelerError | undefined): void {
    if (this.ms !== undefined && this.left() === 0) {
      throw new DeadlineError(this.ms, { cause: failure });
    }
  }

  /** The error of a failed attempt. The daemon knows the deadline and may be the first to report it. */
  explain(thrown: unknown, failure: HeelerError): HeelerError {
    if (this.ms === undefined || this.#end === undefined) {
      return failure;
    }
    const passed =
      failure instanceof RefusedError
        ? failure.code === "DEADLINE_EXCEEDED" || failure.code === "CANCELLED"
        : this.left() === 0 || ConnectError.from(thrown).code === Code.DeadlineExceeded;
    if (passed) {
      return new DeadlineError(this.ms, { cause: thrown });
    }
    return failure;
  }
}
