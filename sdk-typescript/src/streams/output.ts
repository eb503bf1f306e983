/** A task's output as chunks, followed to the end of the task. Lines are in lines.ts. */
import type { CallOptions, Caller } from "../connection/call.js";
import { toDate } from "../connection/time.js";
import { type OutputChunk, OutputStream, type OutputView } from "../gen/heeler/v1/index.js";
import type { Word } from "../options/words.js";

/** Maximum wait of one call; the iterator then calls again. */
const POLL_MS = 60_000;

/** Bytes of one stream that arrived together. */
export interface Chunk {
  /** The offset of the first byte. An offset names the same byte for good. */
  readonly offset: bigint;
  /** The offset after the last byte: the offset to continue from. */
  readonly end: bigint;
  readonly stream: OutputStream;
  /** The time at which the bytes were read from the task. */
  readonly readTime: Date;
  readonly data: Uint8Array;
}

/** The start of the output: one of them. By default the first byte. */
export interface OutputStart {
  /** An absolute offset, such as the `end` of the last chunk. */
  readonly offset?: bigint | undefined;
  /** This many bytes before the present end. */
  readonly tailBytes?: bigint | number | undefined;
}

/** The options of `output`. */
export interface OutputOptions extends OutputStart {
  /** False: only the output so far. By default to the end of the task. */
  readonly follow?: boolean | undefined;
  /** Ends the reading. */
  readonly signal?: AbortSignal | undefined;
}

/** The form of the output. */
export interface ViewOptions {
  /** `raw` (the default): every byte as it was written. `text`: valid UTF-8, cut between characters. */
  readonly view?: Word<typeof OutputView> | undefined;
}

/** The options of `readOutput`. */
export interface ReadOutputOptions extends OutputStart, ViewOptions, CallOptions {
  /** Maximum number of bytes to return: 256 KiB by default. */
  readonly maxBytes?: number | undefined;
  /** Maximum time to wait for the first byte or the end. By default none. */
  readonly waitMs?: number | undefined;
}

/** The chunks from the start on, across restarts of the daemon. */
export async function* readChunks(
  caller: Caller,
  taskId: string,
  options: OutputOptions,
): AsyncGenerator<Chunk, void, undefined> {
  const { follow = true, signal, ...first } = options;
  let start: OutputStart = first;
  for (;;) {
    const waitMs = follow ? POLL_MS : undefined;
    const page = await caller.call("readOutput", { taskId, ...start, waitMs, signal });
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
    const readTime = toDate(chunk.readTime) ?? new Date(0);
    if (content.case === "text") {
      // Replaced characters make the text longer or shorter than its bytes.
      const end = chunks[index + 1]?.offset ?? nextOffset;
      return withJson({ offset, end, stream, readTime, data: Buffer.from(content.value) });
    }
    const data = content.value ?? new Uint8Array();
    return withJson({ offset, end: offset + BigInt(data.length), stream, readTime, data });
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

function toPlain(name: string, value: unknown): unknown {
  if (name === "stream") {
    return `OUTPUT_STREAM_${OutputStream[value as OutputStream]}`;
  }
  if (value instanceof Uint8Array) {
    return Buffer.from(value).toString("base64");
  }
  return typeof value === "bigint" ? value.toString() : value;
}
