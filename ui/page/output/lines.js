// Bytes of output as lines.

import { PLAIN, styleAfter } from "./ansi.js";

/** @import { Style } from "./ansi.js" */
/** @import { Data, Gap, Piece, Stream } from "./bytes.js" */

/** A longer line is continued in another one. */
export const LONGEST_LINE = 8_192;

/**
 * @typedef {object} Line
 * @property {number} offset
 * @property {number} end
 * @property {Stream} stream
 * @property {string} text With escape sequences
 * @property {Style} style At its beginning
 * @property {Gap | null} gap
 */

/** Splits output into lines. The two streams have lines of their own: a change of stream ends a line. */
export class LineReader {
  /** @type {Data | null} */
  #pending = null;
  /** @type {Record<Stream, Style>} */
  #styles = { out: PLAIN, err: PLAIN };
  #decoder = new TextDecoder();

  /**
   * Returns the lines that are complete with this piece.
   * @param {Piece} piece
   * @returns {Line[]}
   */
  push(piece) {
    /** @type {Line[]} */
    const lines = [];
    if (!("bytes" in piece)) {
      this.#flush(lines);
      lines.push(gapLine(piece));
      return lines;
    }
    if (this.#pending && this.#pending.stream !== piece.stream) this.#flush(lines);
    const data = this.#joined(piece);
    const { bytes } = data;
    let from = 0;
    for (;;) {
      const at = bytes.indexOf(10, from);
      const stop = at < 0 ? bytes.length : at + 1;
      while (stop - from > LONGEST_LINE) {
        const cut = boundary(bytes, from + LONGEST_LINE);
        lines.push(this.#line(data, from, cut));
        from = cut;
      }
      if (at < 0) break;
      lines.push(this.#line(data, from, stop));
      from = stop;
    }
    this.#pending =
      from < bytes.length
        ? { ...data, offset: data.offset + from, bytes: bytes.subarray(from) }
        : null;
    return lines;
  }

  /** The line that has begun. @returns {Line | null} */
  get partial() {
    const data = this.#pending;
    if (!data) return null;
    const style = this.#styles[data.stream];
    const line = this.#line(data, 0, data.bytes.length);
    this.#styles[data.stream] = style;
    return line;
  }

  /** @param {Data} piece */
  #joined(piece) {
    const pending = this.#pending;
    if (!pending) return piece;
    const bytes = new Uint8Array(pending.bytes.length + piece.bytes.length);
    bytes.set(pending.bytes);
    bytes.set(piece.bytes, pending.bytes.length);
    return { ...pending, bytes };
  }

  /** @param {Line[]} lines */
  #flush(lines) {
    const data = this.#pending;
    if (data) lines.push(this.#line(data, 0, data.bytes.length));
    this.#pending = null;
  }

  /**
   * @param {Data} data
   * @param {number} from
   * @param {number} to
   * @returns {Line}
   */
  #line({ offset, stream, bytes }, from, to) {
    const text = shown(this.#decoder.decode(bytes.subarray(from, to)));
    const style = this.#styles[stream];
    this.#styles[stream] = styleAfter(text, style);
    return { offset: offset + from, end: offset + to, stream, text, style, gap: null };
  }
}

/**
 * The lines of pieces, with the last one also if it has no line end.
 * @param {Piece[]} pieces
 */
export function linesOf(pieces) {
  const reader = new LineReader();
  const lines = pieces.flatMap((piece) => reader.push(piece));
  const { partial } = reader;
  return partial ? [...lines, partial] : lines;
}

/**
 * A line without its end. Of a text that was written over by a carriage return, the last version.
 * @param {string} text
 */
function shown(text) {
  const line = text.replace(/\r*\n$/, "");
  if (!line.includes("\r")) return line;
  return line.replace(/\r+$/, "").split("\r").at(-1) ?? "";
}

/**
 * The beginning of the character at an index.
 * @param {Uint8Array} bytes
 * @param {number} index
 */
function boundary(bytes, index) {
  let at = index;
  while (at > index - 4 && ((bytes[at] ?? 0) & 0xc0) === 0x80) at -= 1;
  return at;
}

/** @param {Gap} gap @returns {Line} */
function gapLine(gap) {
  const { offset, length } = gap;
  return { offset, end: offset + length, stream: "out", text: "", style: PLAIN, gap };
}
