/**
 * The event stream as it should be consumed: it reconnects, and resumes without a loss and without a
 * repeat. What has been seen, and so what to ask for next, is decided by the Cursor alone.
 */
import { create } from "@bufbuild/protobuf";

import type { Caller } from "./call.js";
import { Cursor, type WatchItem } from "./cursor.js";
import { type Filter, toFilter } from "./filter.js";
import {
  type WatchEventsRequest,
  WatchEventsRequestSchema,
} from "./gen/heeler/v1/background_tasks_pb.js";
import type { Bookmark, TaskEventType } from "./gen/heeler/v1/event_pb.js";
import { resume, type ResumeOptions } from "./resume.js";
import { toOptionalDuration } from "./time.js";

/** From where to watch, and what. */
export interface WatchOptions extends ResumeOptions {
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
  const cursor = new Cursor(toWatchRequest(options));
  const messages = resume(caller, options, (stub, call) => {
    cursor.broke();
    return stub.watchEvents(cursor.request(), call);
  });
  for await (const message of messages) {
    yield* cursor.take(message);
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
