/**
 * The event stream. It reconnects and resumes without a loss and without a repeat; cursor.ts has the
 * position from which it resumes.
 */
import type { Caller } from "../connection/call.js";
import {
  type Bookmark,
  type TaskEventType,
  WatchEventsRequestSchema,
} from "../gen/heeler/v1/index.js";
import type { Filter } from "../options/filter.js";
import { toMessage } from "../options/message.js";
import type { Word } from "../options/words.js";
import { Cursor, type WatchItem } from "./cursor.js";
import { resume, type ResumeOptions } from "./resume.js";

/** The ownership of a session. */
export interface SessionOwnershipOptions {
  readonly sessionId: string;
  /** Time for an owner to come back after the last one is gone: 10 s by default. */
  readonly reattachWindowMs?: number | undefined;
}

/** The options of `watch`. */
export interface WatchOptions extends ResumeOptions {
  /**
   * Streams every event after this revision, 0n for every event that is kept, or after a stored
   * bookmark, which is refused if the daemon has another epoch. By default from now on.
   */
  readonly after?: bigint | Pick<Bookmark, "revision" | "epoch"> | undefined;
  /** Streams every live task first, then the events. Cannot be combined with `after`. */
  readonly initialState?: boolean | undefined;
  /** By default every event. */
  readonly filter?: Filter | undefined;
  /** By default every type. */
  readonly types?: readonly Word<typeof TaskEventType>[] | undefined;
  /** Maximum silence of the stream before a bookmark: at least 100 ms, 15 s by default. */
  readonly bookmarkIntervalMs?: number | undefined;
  /** Adds a summary to ENDED events: the end of the task in words. */
  readonly summaries?: boolean | undefined;
  /**
   * Makes this client an owner of a session as long as the stream lasts, from its first item on. When the
   * last owner is gone and none comes back in time, the live tasks of the session are cancelled.
   */
  readonly ownSession?: SessionOwnershipOptions | undefined;
}

/**
 * Events across restarts of the daemon. The stream ends only with an error that reconnecting cannot
 * remove: a revision that the daemon no longer has, another epoch, a refused user or a bad argument.
 */
export async function* watch(
  caller: Caller,
  options: WatchOptions,
): AsyncGenerator<WatchItem, void, undefined> {
  const { after, signal, giveUpAfterMs, ...fields } = options;
  const bookmark = typeof after === "bigint" ? { revision: after, epoch: "" } : after;
  const start = { afterRevision: bookmark?.revision, epoch: bookmark?.epoch };
  const cursor = new Cursor(toMessage(WatchEventsRequestSchema, { ...fields, ...start }));
  const messages = resume(caller, { signal, giveUpAfterMs }, (stub, call) => {
    cursor.dropPartialState();
    return stub.watchEvents(cursor.request(), call);
  });
  for await (const message of messages) {
    yield* cursor.take(message);
  }
}
