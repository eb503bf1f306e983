/** The options of the calls, one interface for each call that has any. */
import type { CallOptions } from "../connection/call.js";
import type { BlockKind, ShutdownTasks, WaitCondition } from "../gen/heeler/v1/index.js";
import type { Filter } from "./filter.js";
import type { SearchOptions } from "./output.js";
import type { StopOptions } from "./spec.js";
import type { Word } from "./words.js";

/** The requester of a stop or of a move to the background. */
export interface RequesterOptions {
  /** The requester's reason, up to 4 KiB; kept with the task. */
  readonly reason?: string | undefined;
  /** The requester's name; kept with the task. */
  readonly actor?: string | undefined;
}

/** The options of `cancel`. */
export interface CancelOptions extends CallOptions, RequesterOptions {
  /** Overrides the task's own stop policy. Cannot be combined with `force`. */
  readonly graceful?: StopOptions | undefined;
  /** Kills the whole tree at once. */
  readonly force?: boolean | undefined;
  /**
   * True (the default): answers when every tree is proven empty, or names the survivors of a kill that
   * has lasted 10 s. False: answers as soon as the intent is durable.
   */
  readonly wait?: boolean | undefined;
  /** Also stops the tasks that a selected task spawned, and theirs. */
  readonly cascade?: boolean | undefined;
}

/** The options of `detach`. */
export interface DetachOptions extends CallOptions, RequesterOptions {
  /** The timeout from here on. By default the task's own. */
  readonly timeoutMs?: number | undefined;
}

/** The options of `list`. The deadline counts for each page. */
export interface ListOptions extends CallOptions {
  /** By default every task. */
  readonly filter?: Filter | undefined;
  /** Includes finished tasks. `filter.states`, if set, takes precedence. */
  readonly includeFinished?: boolean | undefined;
  /**
   * Includes tasks that finished in the foreground, which are hidden otherwise unless the filter names
   * them by id.
   */
  readonly includeFinishedForeground?: boolean | undefined;
  /** Also looks up the ports on which the live tasks of a page listen. */
  readonly includePorts?: boolean | undefined;
  /** Maximum number of tasks in a page: 50 by default, at most 1000. */
  readonly pageSize?: number | undefined;
  /** The `nextPageToken` of the last page. */
  readonly pageToken?: string | undefined;
}

/** The options of `inspect`. */
export interface InspectOptions extends CallOptions {
  /** Bytes to return from the end of the output, up to 256 KiB: 4 KiB by default. */
  readonly outputTailBytes?: number | undefined;
  /** Blocks of progress to return, up to 64: 10 by default. */
  readonly blockCount?: number | undefined;
  /** Returns the screen of a task with a terminal. */
  readonly includeScreen?: boolean | undefined;
}

/** One piece of a worker's progress. */
export interface BlockOptions {
  /** `note` by default. */
  readonly kind?: Word<typeof BlockKind> | undefined;
  /** The text. Beyond 4 KiB it is cut. */
  readonly text?: string | undefined;
  /** The length of the text before it was cut, if the caller has cut it. */
  readonly textBytes?: number | undefined;
  /** The name of the tool. */
  readonly name?: string | undefined;
}

/** A change of a task's progress. An absent option changes nothing. */
export interface ProgressOptions {
  /** Blocks to append, in order. */
  readonly blocks?: readonly BlockOptions[] | undefined;
  /** The present activity. */
  readonly intent?: string | undefined;
  /** From 0 to 100. */
  readonly percent?: number | undefined;
  /** All counters: they replace the earlier ones. */
  readonly counts?: Readonly<Record<string, number | bigint>> | undefined;
}

/** The options of `reportProgress`. */
export interface ReportProgressOptions extends CallOptions {
  /** The change. Absent: none, and the call is no sign of activity. */
  readonly update?: ProgressOptions | undefined;
  /** True: a cancel in the next minute begins softly. */
  readonly listens?: boolean | undefined;
}

/** The options of `writeInput`. */
export interface WriteInputOptions extends CallOptions {
  /** The writer's id, up to 48 bytes. The first writer with an id has the input, until another one takes over. */
  readonly writerId?: string | undefined;
  /** The offset of the first byte; a repeated call then changes nothing. By default the end of the input. */
  readonly offset?: bigint | number | undefined;
  /** The bytes, up to 1 MiB. */
  readonly data?: Uint8Array | undefined;
  /** Closes the input behind the bytes. */
  readonly close?: boolean | undefined;
  /** Takes the input from the writer that has it. */
  readonly takeOver?: boolean | undefined;
  /** The longest time to wait for room for all of the data, up to 5 minutes. By default no wait. */
  readonly waitMs?: number | undefined;
}

/** The size of a terminal: 1 to 1000 columns and rows. */
export interface ResizeTerminalOptions extends CallOptions {
  readonly columns: number;
  readonly rows: number;
}

/** The options of `sendMessage`. */
export interface SendMessageOptions extends CallOptions {
  /** The message, up to 64 KiB. */
  readonly text: string;
  /** Makes the call safe to repeat. */
  readonly messageId?: string | undefined;
  /** The sender's name; kept with the message. */
  readonly actor?: string | undefined;
}

/** The condition to wait for, of one task. */
export interface UntilOptions {
  /**
   * `finished` (the default): the task is in a terminal state. `outOfForeground`: it is in the
   * background or finished. `ready`: it is known whether it is ready, by its `readiness`.
   */
  readonly until?: Exclude<Word<typeof WaitCondition>, "matched"> | undefined;
}

/** The options of `wait`. The end of a wait never ends a task. */
export interface WaitOptions extends CallOptions {
  /**
   * The condition to wait for. `finished` (the default): the task is in a terminal state.
   * `outOfForeground`: it is in the background or finished. `matched`: it has written a line that `match`
   * describes, only with `taskIds`; the answer is not `satisfied` if no such line can come any more.
   */
  readonly until?: Word<typeof WaitCondition> | undefined;
  /** The line to wait for, with `matched`: one that is there already, or one that comes. */
  readonly match?: SearchOptions | undefined;
  /** The number of tasks in `taskIds` that must meet the condition: 1 for any. By default all. */
  readonly count?: number | undefined;
  /**
   * Maximum time to wait, across restarts of the daemon; then the answer is not `satisfied`. 0: answer
   * at once. By default no limit.
   */
  readonly timeoutMs?: number | undefined;
}

/** The options of `updateQueue`. An absent option changes nothing. */
export interface UpdateQueueOptions extends CallOptions {
  /** Maximum number of its tasks that run at a time, 1 to 10,000. A new queue has one slot. */
  readonly slots?: number | undefined;
  /** True admits no further task. */
  readonly paused?: boolean | undefined;
}

/** The options of `listSessions`. */
export interface ListSessionsOptions extends CallOptions {
  /** This session alone. */
  readonly sessionId?: string | undefined;
  /** Maximum number of sessions in a page: 100 by default, at most 500. */
  readonly pageSize?: number | undefined;
  /** The `nextPageToken` of the last page. */
  readonly pageToken?: string | undefined;
}

/** The options of `shutdown`. */
export interface ShutdownOptions extends CallOptions, RequesterOptions {
  /** `leaveRunning` (the default): the next daemon takes over. `stop`: all tasks are stopped first. */
  readonly tasks?: Word<typeof ShutdownTasks> | undefined;
  /** Overrides each task's own grace. Only with `stop`. */
  readonly graceMs?: number | undefined;
}
