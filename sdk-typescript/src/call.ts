/** What every call has: typed errors, repetition while the daemon is away, a signal, a deadline. */
import { Code, ConnectError, type CallOptions as StubOptions } from "@connectrpc/connect";

import type { Address } from "./address.js";
import { Backoff } from "./backoff.js";
import { ClosedError, DeadlineError, type HeelerError, RefusedError } from "./errors.js";
import { toHeelerError } from "./failure.js";
import { checkNumber, pause, timerMs } from "./time.js";
import type { Stub, Transport } from "./transport.js";

/** What can be said of any call. */
export interface CallOptions {
  /** Ends the call, never a task; it then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** How long the call may take in all, repetition included. By default as long as it takes. */
  readonly deadlineMs?: number | undefined;
}

/** What a failed attempt leaves open, and so whether there may be another. */
export type Repeat = "always" | "ifUnheard" | "never";

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

  /** Throws once the client is closed: a broken connection is then no reason to open another. */
  checkOpen(): void {
    if (this.transport.isClosed) {
      throw new ClosedError("the client is closed");
    }
  }

  /** Makes the call, again and again if it may be repeated. */
  async call<T>(
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
      const delay = backoff.afterFailure(performance.now() - begun);
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
    case "ifUnheard":
      return failure.isUnheard;
    case "never":
      return false;
  }
}

/** The moment by which a call has to be answered; there may be none. */
class Deadline {
  readonly #end: number | undefined;

  constructor(private readonly ms: number | undefined) {
    if (ms !== undefined) {
      checkNumber("deadlineMs", ms);
      if (timerMs(ms) !== undefined) {
        this.#end = performance.now() + Math.max(ms, 0);
      }
    }
  }

  /** How long there is; undefined: for ever. */
  left(): number | undefined {
    return this.#end === undefined ? undefined : Math.max(this.#end - performance.now(), 0);
  }

  /** What the stub is to keep to. */
  limit(signal: AbortSignal | undefined): StubOptions {
    const timeoutMs = this.left();
    return {
      ...(signal === undefined ? {} : { signal }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    };
  }

  /** Throws once it has passed. */
  check(failure: HeelerError | undefined): void {
    if (this.ms !== undefined && this.left() === 0) {
      throw new DeadlineError(this.ms, { cause: failure });
    }
  }

  /** The daemon is told of the deadline, and may be the first to notice that it has passed. */
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
