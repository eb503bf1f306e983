/**
 * A stream that goes on across every break of its connection and every restart of the daemon. It owns
 * when to ask again; what to ask for then is its caller's to know.
 */
import { formatAddress } from "./address.js";
import { Backoff } from "./backoff.js";
import type { Caller } from "./call.js";
import { DisconnectedError, type HeelerError } from "./errors.js";
import { isFinal, toHeelerError } from "./failure.js";
import { checkNumber, pause } from "./time.js";
import type { Stub } from "./transport.js";

/** How long to go on. */
export interface ResumeOptions {
  /** Ends with an error once the daemon has been away for this long. By default it is waited for. */
  readonly giveUpAfterMs?: number | undefined;
  /** Ends the stream: it then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Opens the stream, for the first time or again. */
export type Open<M> = (stub: Stub, options: { readonly signal: AbortSignal }) => AsyncIterable<M>;

/**
 * The messages of one stream after another. It has no end of its own: whoever has the last message leaves,
 * and an error that asking again cannot cure is thrown.
 */
export async function* resume<M>(
  caller: Caller,
  options: ResumeOptions,
  open: Open<M>,
): AsyncGenerator<M, void, undefined> {
  const { signal, giveUpAfterMs = Infinity } = options;
  checkNumber("giveUpAfterMs", giveUpAfterMs);
  const backoff = new Backoff(giveUpAfterMs);
  for (;;) {
    signal?.throwIfAborted();
    caller.checkOpen();
    const asked = performance.now();
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
    // An answer, however long ago, was no failure: patience begins with the break.
    const delay = backoff.afterFailure(isAnswered ? 0 : performance.now() - asked);
    if (delay === undefined || isFinal(failure)) {
      throw failure;
    }
    await pause(delay, signal);
  }
}

/** One stream, until it breaks. */
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
    // One that ends without a word is a daemon that is going away.
    this.failure = new DisconnectedError(formatAddress(caller.address));
    const stream = open(caller.stub, { signal: this.#abort.signal });
    this.#messages = stream[Symbol.asyncIterator]();
  }

  /** The next message; undefined: it broke, and `failure` says how. */
  async next(): Promise<M | undefined> {
    try {
      const result: IteratorResult<M, undefined> = await this.#messages.next();
      return result.value;
    } catch (thrown) {
      this.failure = toHeelerError(thrown, this.caller.address);
      return undefined;
    }
  }

  /** Leaves the stream. Giving up the iterator alone would leave it open. */
  close(): void {
    this.signal?.removeEventListener("abort", this.#forward);
    this.#abort.abort();
  }
}
