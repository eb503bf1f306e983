/** The selection of output, and the patterns to look for in it. */
import type { Timestamp } from "@bufbuild/protobuf/wkt";

import type { CallOptions } from "../connection/call.js";
import type { OutputStream, OutputView } from "../gen/heeler/v1/index.js";
import type { Word } from "./words.js";

/** The start of the output: one of them. By default the first byte. */
export interface OutputStart {
  /** An absolute offset, such as the `end` of the last chunk. */
  readonly offset?: bigint | undefined;
  /** This many bytes before the present end. */
  readonly tailBytes?: bigint | number | undefined;
}

/** A start that is looked for in the output. */
export interface TailStart {
  /** This many bytes before the present end. */
  readonly tailBytes?: bigint | number | undefined;
  /** This many lines before the present end. With a filter: the last lines that it selects. */
  readonly tailLines?: bigint | number | undefined;
  /** The first byte that was read from the task at this time or later. */
  readonly since?: Date | Timestamp | undefined;
}

/** The form of the output. */
export interface ViewOptions {
  /**
   * `raw` (the default): every byte as it was written. `text`: valid UTF-8, cut between characters.
   * `plain`: as `text`, without terminal escape sequences.
   */
  readonly view?: Word<typeof OutputView> | undefined;
}

/**
 * A selection of output. With `include` or `exclude` it selects lines, and each chunk is one line with its
 * line end. Patterns are regular expressions of the Rust crate `regex`, without look-around and
 * back-references.
 */
export interface OutputFilterOptions {
  /** Only this stream. By default both. */
  readonly stream?: Word<typeof OutputStream> | undefined;
  /** Selects the lines that match. By default all lines. */
  readonly include?: string | undefined;
  /** Drops the lines that match, before `include` is considered. By default none. */
  readonly exclude?: string | undefined;
  /** Lines to return before each line that `include` selects: at most 100. */
  readonly linesBefore?: number | undefined;
  /** Lines to return after each line that `include` selects: at most 100. */
  readonly linesAfter?: number | undefined;
}

/** The beginning and the end of the present output, each by bytes or by lines: 16 KiB by default. */
export interface HeadAndTailOptions {
  readonly headBytes?: number | undefined;
  readonly headLines?: number | undefined;
  readonly tailBytes?: number | undefined;
  readonly tailLines?: number | undefined;
}

/** A pattern to look for in the output of a task, which MATCHED events tell of. */
export interface PatternOptions {
  /** A name that is unique within the task. */
  readonly name: string;
  /** The regular expression, applied to a line without its line end and escape sequences. */
  readonly regex: string;
  /** Only this stream. By default both. */
  readonly stream?: Word<typeof OutputStream> | undefined;
  /** Minimum time between two MATCHED events of the pattern: 1 s by default. */
  readonly cooldownMs?: number | undefined;
  /** Maximum number of MATCHED events: 100 by default. */
  readonly maxEvents?: number | undefined;
  /** The offset to search from. By default the first byte that is kept. */
  readonly fromOffset?: bigint | number | undefined;
}

/** A search for a line of output. */
export interface SearchOptions {
  /** The regular expression, applied to a line without its line end and escape sequences. */
  readonly regex: string;
  /** Only this stream. By default both. */
  readonly stream?: Word<typeof OutputStream> | undefined;
}

/** The options of `updateTask`. */
export interface UpdateTaskOptions extends CallOptions {
  /** Patterns to look for. One whose name the task has replaces that pattern. */
  readonly setPatterns?: readonly PatternOptions[] | undefined;
  /** The names of patterns to remove. A name that the task does not have is ignored. */
  readonly removePatterns?: readonly string[] | undefined;
}
