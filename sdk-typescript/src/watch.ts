/**
 * The event stream as it should be consumed: it reconnects, and resumes without a loss and without a
 * repeat. What has been seen, and so what to ask for next, is decided by the Cursor alone.
 */
import { create } from "@bufbuild/protobuf";

import { formatAddress } from "./address.js";
import { Backoff } from "./backoff.js";
import type { Caller } from "./call.js";
import { Cursor, type WatchItem } from "./cursor.js";
import { DisconnectedError, type HeelerError } from "./errors.js";
import { isFinal, toHeelerError } from "./failure.js";
import { type Filter, toFilter } from "./filter.js";
import {
  type WatchEventsRequest,
  WatchEventsRequestSchema,
  type WatchEventsResponse,
} from "./gen/heeler/v1/background_tasks_pb.js";
import type { Bookmark, TaskEventType } from "./gen/heeler/v1/event_pb.js";
import { checkNumber, pause, toOptionalDuration } from "./time.js";

/** From where to watch, and what. */
export interface WatchOptions {
  /**
   * Every event after this revision, 0n being the first that there is record of; or after a bookmark
   * that was kept, which is refused if the daemon now has another state directory. By default from now.
   */
  readonly after?: bigint | Pick<Bookmark, "revision" | "stateId"> | undefined;
  /** First every live task, then what happens after that. Not together with `after`. */
  readonly initialState?: boolean | undefined;
  /** Only of these tasks. */
  readonly filter?: Filter | undefined;
  /** Only these events. */
  readonly types?: readonly TaskEventType[] | undefined;
  /** How long the stream may be silent before a bookmark comes: at least 100, 15,000 by default. */
  readonly bookmarkIntervalMs?: number | undefined;
  /** Ends with an error once the daemon has been away for this long. By default it is waited for. */
  readonly giveUpAfterMs?: number | undefined;
  /** Ends the watch: it then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Events, from a point on, across every restart of the daemon.
 *
 * It ends only with an error that reconnecting cannot cure: a revision that the daemon no longer has,
 * another state directory, another user's daemon, a bad argument. A consumer that is slow costs the
 * daemon nothing and misses nothing.
 */
export async function* watch(
  caller: Caller,
  options: WatchOptions,
): AsyncGenerator<WatchItem, void, undefined> {
  const { signal, giveUpAfterMs = Infinity } = options;
  checkNumber("giveUpAfterMs", giveUpAfterMs);
  const cursor = new Cursor(toWatchRequest(options));
  const backoff = new Backoff(giveUpAfterMs);
  for (;;) {
    signal?.throwIfAborted();
    caller.checkOpen();
    const asked = performance.now();
    let isAnswered = false;
    const connection = new Connection(caller, cursor.request(), signal);
    try {
      for (let message; (message = await connection.next()) !== undefined;) {
        backoff.reset();
        isAnswered = true;
        yield* cursor.take(message);
      }
    } finally {
      connection.close();
    }
    signal?.throwIfAborted();
    caller.checkOpen();
    cursor.broke();
    const failure = connection.failure;
    // An answer, however long ago, was no failure: patience begins with the break.
    const delay = backoff.afterFailure(isAnswered ? 0 : performance.now() - asked);
    if (delay === undefined || isFinal(failure)) {
      throw failure;
    }
    await pause(delay, signal);
  }
}

/** One stream of events, until it breaks. */
class Connection {
  readonly #abort = new AbortController();
  readonly #forward = (): void => {
    this.#abort.abort(this.signal?.reason);
  };
  readonly #messages;
  failure: HeelerError;

  constructor(
    private readonly caller: Caller,
    request: WatchEventsRequest,
    private readonly signal: AbortSignal | undefined,
  ) {
    signal?.addEventListener("abort", this.#forward, { once: true });
    // The stream has no end of its own: one that ends without a word is a daemon that is going away.
    this.failure = new DisconnectedError(formatAddress(caller.address));
    const stream = caller.stub.watchEvents(request, { signal: this.#abort.signal });
    this.#messages = stream[Symbol.asyncIterator]();
  }

  /** The next message; undefined: it broke, and `failure` says how. */
  async next(): Promise<WatchEventsResponse | undefined> {
    try {
      const result: IteratorResult<WatchEventsResponse, undefined> = await this.#messages.next();
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

function toWatchRequest(options: WatchOptions): WatchEventsRequest {
  const { after, filter } = options;
  const bookmark = typeof after === "bigint" ? { revision: after, stateId: "" } : after;
  return create(WatchEventsRequestSchema, {
    afterRevision: bookmark?.revision,
    initialState: options.initialState ?? false,
    stateId: bookmark?.stateId ?? "",
    filter: filter === undefined ? undefined : toFilter(filter),
    types: [...(options.types ?? [])],
    bookmarkInterval: toOptionalDuration("bookmarkIntervalMs", options.bookmarkIntervalMs),
  });
}
