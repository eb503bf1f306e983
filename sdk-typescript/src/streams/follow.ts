/**
 * The output of many tasks in one stream. It reconnects and resumes without a loss and without a repeat;
 * follow-cursor.ts has the position from which it resumes.
 */
import type { Caller } from "../connection/call.js";
import {
  type Bookmark,
  FollowOutputRequestSchema,
  type FollowUntil,
} from "../gen/heeler/v1/index.js";
import type { Filter } from "../options/filter.js";
import { toMessage } from "../options/message.js";
import type { OutputFilterOptions, TailStart, ViewOptions } from "../options/output.js";
import type { Word } from "../options/words.js";
import { FollowCursor, type FollowItem } from "./follow-cursor.js";
import { resume, type ResumeOptions } from "./resume.js";

/** A place in the output of a task. */
export interface OutputCursorOptions {
  readonly taskId: string;
  /** The offset to continue from, such as the `end` of a chunk. By default the start of the stream. */
  readonly offset?: bigint | undefined;
}

/**
 * The options of `followOutput`. The start (`tailBytes`, `tailLines` or `since`) holds for tasks that are
 * there already; a task that is created later is followed from its first byte.
 */
export interface FollowOptions extends TailStart, ViewOptions, ResumeOptions {
  /** The tasks to follow, also those that match later. By default all. */
  readonly filter?: Filter | undefined;
  /** Tasks to follow from an offset, live or finished, whether they match or not: at most 10,000. */
  readonly cursors?: readonly OutputCursorOptions[] | undefined;
  /** The part of the output to give. By default all of it. */
  readonly outputFilter?: OutputFilterOptions | undefined;
  /** Follows finished tasks, too: the 1,000 that were created last. Cannot be combined with `after`. */
  readonly includeFinished?: boolean | undefined;
  /** `finished`: the stream ends after the last task. `forever` (the default): not by itself. */
  readonly until?: Word<typeof FollowUntil> | undefined;
  /** Follows the tasks of `cursors`, and those that match by an event after this point, and no others. */
  readonly after?: bigint | Pick<Bookmark, "revision" | "epoch"> | undefined;
  /** Maximum silence of the stream before a sign of life: at least 100 ms, 15 s by default. */
  readonly bookmarkIntervalMs?: number | undefined;
}

/** The output of many tasks, across restarts of the daemon. */
export async function* followOutput(
  caller: Caller,
  options: FollowOptions,
): AsyncGenerator<FollowItem, void, undefined> {
  const { after, signal, giveUpAfterMs, ...fields } = options;
  const bookmark = typeof after === "bigint" ? { revision: after, epoch: "" } : after;
  const start = { afterRevision: bookmark?.revision, epoch: bookmark?.epoch };
  const cursor = new FollowCursor(toMessage(FollowOutputRequestSchema, { ...fields, ...start }));
  const messages = resume(caller, { signal, giveUpAfterMs }, (stub, call) => {
    cursor.dropPartialState();
    return stub.followOutput(cursor.request(), call);
  });
  for await (const message of messages) {
    yield* cursor.take(message);
    if (cursor.isFinished) {
      return;
    }
  }
}
