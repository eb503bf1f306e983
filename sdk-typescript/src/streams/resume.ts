/**
 * A stream that continues across breaks of the connection and restarts of the daemon. This module
 * decides when to open it again; its caller decides with which request.
 */
import { formatAddress } from "../connection/address.js";
import { Backoff } from "../connection/backoff.js";
import type { Caller } from "../connection/call.js";
import { DisconnectedError, type HeelerError } from "../errors.js";
import { isFinal, toHeelerError, wasConnected } from "../connection/failure.js";
import { checkMilliseconds, pause } from "../connection/time.js";
import type { Stub } from "../connection/transport.js";

/** The options of a stream that resumes. */
export interface ResumeOptions {
  /** Maximum time without a daemon; then the stream throws an error. By default no limit. */
  readonly giveUpAfterMs?: number | undefined;
  /** Ends the stream, which then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Opens the stream, the first time or again. */
export type Open<M> = (stub: Stub, options: { readonly signal: AbortSignal }) => AsyncIterable<M>;

/**
 * The messages of one stream after another. There is no end: the caller leaves after its last message.
 * Throws an error that another attempt would not remove.
 */
export async function* resume<M>(
  caller: Caller,
  options: ResumeOptions,
  open: Open<M>,
): AsyncGenerator<M, void, undefined> {
  const { signal, giveUpAfterMs = Infinity } = options;
  checkMilliseconds("giveUpAfterMs", giveUpAfterMs);
  const backoff = new Backoff(giveUpAfterMs);
  for (;;) {
    signal?.throwIfAborted();
    caller.checkOpen();
    const opened = performance.now();
    let isAnswered = false;
    const connection = new Connection(caller, open, signal);
    try {
      for (let message; (message = await connection.next()) !== undefined;) {
        backoff.reset();
        isAnswered = true;
        yield message;
      }
    } finally {
      connection.close();
    }
    signal?.throwIfAborted();
    caller.checkOpen();
    const failure = connection.failure;
    // After an answer, the time without a daemon counts from the break.
    const tookMs = isAnswered ? 0 : performance.now() - opened;
    const delay = backoff.afterFailure(tookMs, wasConnected(failure));
    if (delay === undefined || isFinal(failure)) {
      throw failure;
    }
    await pause(delay, signal);
  }
}

/** One stream until it breaks. */
class Connection<M> {
  readonly #abort = new AbortController();
  readonly #forward = (): void => {
    this.#abort.abort(this.signal?.reason);
  };
  readonly #messages: AsyncIterator<M>;
  failure: HeelerError;

  constructor(
    private readonly caller: Caller,
    open: Open<M>,
    private readonly signal: AbortSignal | undefined,
  ) {
    signal?.addEventListener("abort", this.#forward, { once: true });
    // A stream that ends without a status comes from a daemon that is closing.
    this.failure = new DisconnectedError(formatAddress(caller.address));
    const stream = open(caller.stub, { signal: this.#abort.signal });
    this.#messages = stream[Symbol.asyncIterator]();
  }

  /** The next message; undefined: the stream broke, and `failure` has the error. */
  async next(): Promise<M | undefined> {
    try {
      const result: IteratorResult<M, undefined> = await this.#messages.next();
      return result.value;
    } catch (thrown) {
      this.failure = toHeelerError(thrown, this.caller.address);
      return undefined;
    }
  }

  /** Closes the stream. Dropping the iterator alone would leave it open. */
  close(): void {
    this.signal?.removeEventListener("abort", this.#forward);
    this.#abort.abort();
  }
}
