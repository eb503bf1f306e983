/** A task's output as chunks, followed to the end of the task. Lines are in lines.ts. */
import type { CallOptions, Caller } from "../connection/call.js";
import { toDate } from "../connection/time.js";
import { type OutputChunk, OutputGapCause, OutputStream } from "../gen/heeler/v1/index.js";
import type {
  HeadAndTailOptions,
  OutputFilterOptions,
  OutputStart,
  TailStart,
  ViewOptions,
} from "../options/output.js";

/** Maximum wait of one call; the iterator then calls again. */
const POLL_MS = 60_000;

/** Bytes of one stream that arrived together, or a gap. */
export interface Chunk {
  /** The offset of the first byte. An offset names the same byte for good. */
  readonly offset: bigint;
  /** The offset after the last byte or the gap: the offset to continue from. */
  readonly end: bigint;
  /** Unspecified for a gap. */
  readonly stream: OutputStream;
  /** The time at which the bytes were read from the task. 1970 for a gap. */
  readonly readTime: Date;
  /** Empty for a gap. */
  readonly data: Uint8Array;
  /** The output that is missing from `offset` on, if this is a gap. */
  readonly gap?: Gap;
  /** True if a filter with lines of context has left out the line before this one. */
  readonly beginsGroup?: boolean;
}

/** Output that is missing. */
export interface Gap {
  /** The number of missing bytes. */
  readonly length: bigint;
  readonly cause: OutputGapCause;
  /** The number of line ends among them, if the output was left out by lines. */
  readonly lines?: bigint;
}

/** The options of `output`. */
export interface OutputOptions extends OutputStart, TailStart, ViewOptions {
  /**
   * The part of the output to give. By default all of it. With a pattern, lines of the other stream may lie
   * between the bytes of a line: its `end` is then no offset to continue from.
   */
  readonly filter?: OutputFilterOptions | undefined;
  /** False: only the output so far. By default to the end of the task. */
  readonly follow?: boolean | undefined;
  /** Ends the reading. */
  readonly signal?: AbortSignal | undefined;
}

/** The options of `readOutput`. */
export interface ReadOutputOptions extends OutputStart, TailStart, ViewOptions, CallOptions {
  /**
   * The beginning and the end, with a gap between them. It is a start, and cannot be combined with
   * `filter`, `waitMs`, `maxBytes` and `maxLines`.
   */
  readonly headAndTail?: HeadAndTailOptions | undefined;
  /** The part of the output to return. By default all of it. */
  readonly filter?: OutputFilterOptions | undefined;
  /** Maximum number of bytes to return: 256 KiB by default. */
  readonly maxBytes?: number | undefined;
  /** The answer ends after this many line ends. By default no limit. */
  readonly maxLines?: number | undefined;
  /** Maximum time to wait for the first byte or the end. By default none. */
  readonly waitMs?: number | undefined;
}

/** The chunks from the start on, across restarts of the daemon. */
export async function* readChunks(
  caller: Caller,
  taskId: string,
  options: OutputOptions,
): AsyncGenerator<Chunk, void, undefined> {
  const { follow = true, signal, view, filter, ...first } = options;
  const part = { taskId, view, filter, waitMs: follow ? POLL_MS : undefined };
  let start: OutputStart & TailStart = first;
  for (;;) {
    const page = await caller.call("readOutput", { ...part, ...start, signal });
    yield* toChunks(page.chunks, page.nextOffset);
    if (page.nextOffset >= page.endOffset && (page.complete || !follow)) {
      return;
    }
    start = { offset: page.nextOffset };
  }
}

/** The chunks of one answer. */
export function toChunks(chunks: readonly OutputChunk[], nextOffset: bigint): Chunk[] {
  return chunks.map((chunk, index) => {
    const { content, offset, stream } = chunk;
    const group = chunk.beginsGroup === true ? { beginsGroup: true } : {};
    const readTime = toDate(chunk.readTime) ?? new Date(0);
    if (content.case === "text") {
      // Replaced characters make the text longer or shorter than its bytes.
      const end = chunks[index + 1]?.offset ?? nextOffset;
      return withJson({
        offset,
        end,
        stream,
        readTime,
        data: Buffer.from(content.value),
        ...group,
      });
    }
    if (content.case === "gap") {
      const { length, cause, lines } = content.value;
      const missing = { offset, end: offset + length, stream, readTime, data: new Uint8Array() };
      const gap = { length, cause, ...(lines === undefined ? {} : { lines }) };
      return withJson({ ...missing, gap });
    }
    const data = content.value ?? new Uint8Array();
    return withJson({
      offset,
      end: offset + BigInt(data.length),
      stream,
      readTime,
      data,
      ...group,
    });
  });
}

/**
 * Adds a `toJSON` that is not enumerable to a piece of output: offsets become strings, bytes base64 and
 * the stream its name, as in the contract's JSON.
 */
export function withJson<T extends { readonly stream: OutputStream }>(piece: T): T {
  const toJSON = (): unknown =>
    Object.fromEntries(Object.entries(piece).map(([name, value]) => [name, toPlain(name, value)]));
  return Object.defineProperty(piece, "toJSON", { value: toJSON });
}

function toPlain(field: string, value: unknown): unknown {
  if (field === "gap") {
    const { length, cause, lines } = value as Gap;
    const name = `OUTPUT_GAP_CAUSE_${OutputGapCause[cause]}`;
    return { length: length.toString(), cause: name, lines: lines?.toString() };
  }
  if (field === "stream") {
    return `OUTPUT_STREAM_${OutputStream[value as OutputStream]}`;
  }
  if (value instanceof Uint8Array) {
    return Buffer.from(value).toString("base64");
  }
  return typeof value === "bigint" ? value.toString() : value;
}
