/** Cuts chunks into lines, separately for each stream. Memory is bounded by the longest line. */
import type { OutputStream } from "../gen/heeler/v1/index.js";
import { type Chunk, withJson } from "./output.js";

/** Maximum length of a line that is given in one piece. */
const DEFAULT_MAX_BYTES = 1 << 20;
const NEWLINE = 0x0a;
const RETURN = 0x0d;

/** A line of one stream. */
export interface Line {
  /** The offset of the first byte. Bytes of the other stream may lie between it and the last one. */
  readonly offset: bigint;
  readonly stream: OutputStream;
  /** The line without its line break. Invalid UTF-8 is replaced by U+FFFD. */
  readonly text: string;
}

/** The options of lines. */
export interface LineOptions {
  /** A longer line is given in pieces of this size: 1 MiB by default. */
  readonly maxLineBytes?: number | undefined;
}

/** The lines of chunks, including a last one without a line break. */
export async function* toLines(
  chunks: AsyncIterable<Chunk>,
  options: LineOptions,
): AsyncGenerator<Line, void, undefined> {
  const max = options.maxLineBytes ?? DEFAULT_MAX_BYTES;
  if (!Number.isInteger(max) || max < 1) {
    throw new RangeError(`maxLineBytes must be a whole number of at least 1, not ${String(max)}`);
  }
  const partial = new Map<OutputStream, PartialLine>();
  for await (const chunk of chunks) {
    if (chunk.gap !== undefined) {
      // What follows a gap is another line.
      for (const line of partial.values()) {
        yield* line.flush();
      }
      continue;
    }
    const line = partial.get(chunk.stream) ?? new PartialLine(chunk.stream);
    partial.set(chunk.stream, line);
    yield* line.add(chunk, max);
  }
  for (const line of partial.values()) {
    yield* line.flush();
  }
}

/** The unfinished line of one stream. */
class PartialLine {
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #offset = 0n;

  constructor(private readonly stream: OutputStream) {}

  *add(chunk: Chunk, max: number): Generator<Line> {
    const { data } = chunk;
    for (let at = 0; at < data.length;) {
      const newline = data.indexOf(NEWLINE, at);
      const end = Math.min(newline < 0 ? data.length : newline, at + max - this.#bytes);
      if (this.#bytes === 0) {
        this.#offset = chunk.offset + BigInt(at);
      }
      this.#parts.push(data.subarray(at, end));
      this.#bytes += end - at;
      if (end === newline) {
        yield this.#take();
        at = end + 1;
      } else {
        if (this.#bytes >= max) {
          yield this.#take();
        }
        at = end;
      }
    }
  }

  *flush(): Generator<Line> {
    if (this.#bytes > 0) {
      yield this.#take();
    }
  }

  #take(): Line {
    let bytes = Buffer.concat(this.#parts);
    if (bytes.at(-1) === RETURN) {
      bytes = bytes.subarray(0, -1);
    }
    this.#parts = [];
    this.#bytes = 0;
    return withJson({
      offset: this.#offset,
      stream: this.stream,
      text: bytes.toString("utf8"),
    });
  }
}
