/** The selection of tasks. */
import type { Placement, TaskKind, TaskState } from "../gen/heeler/v1/index.js";
import type { Word } from "./words.js";

/** A selection of tasks. A task is selected if it matches every field that is set. */
export interface Filter {
  /** One of these ids: at most 1000. */
  readonly taskIds?: readonly string[] | undefined;
  readonly sessionId?: string | undefined;
  /** One of these kinds. */
  readonly kinds?: readonly Word<typeof TaskKind>[] | undefined;
  /** One of these states. */
  readonly states?: readonly Word<typeof TaskState>[] | undefined;
  /** All of these labels, with these values. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** The task that spawned them. */
  readonly parentId?: string | undefined;
  /** Stale, or not stale. */
  readonly stale?: boolean | undefined;
  readonly placement?: Word<typeof Placement> | undefined;
  /** Started in this directory or below it: an absolute path. */
  readonly directory?: string | undefined;
  readonly queue?: string | undefined;
  /** With this name, exactly. */
  readonly name?: string | undefined;
  /** With an id that begins so, or whose characters after the dash do. */
  readonly idPrefix?: string | undefined;
  /** With a process that listens on this TCP port, so a live task. Not for `wait` and `watch`. */
  readonly port?: number | undefined;
}
