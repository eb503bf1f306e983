// The part of a task's output that is loaded: a bounded number of lines around the place that is shown.

import { before, end, fromLineStart } from "./bytes.js";
import { LineReader, linesOf } from "./lines.js";

/** @import { Piece } from "./bytes.js" */
/** @import { Line } from "./lines.js" */

export const MOST_LINES = 20_000;
export const MOST_BYTES = 4 << 20;

export class OutputWindow {
  /** Complete lines, in order. @type {Line[]} */
  lines = [];
  /** The offset of the first byte. */
  start = 0;
  /** The offset after the last byte. */
  end = 0;
  /** The end of the output as far as it is known. */
  total = 0;
  /** True if no byte will follow `total`. */
  isComplete = false;
  #reader = new LineReader();

  /**
   * Begins anew at an offset.
   * @param {number} offset
   */
  reset(offset) {
    this.lines = [];
    this.start = offset;
    this.end = offset;
    this.#reader = new LineReader();
  }

  /** The lines, with the last one if it is not complete. */
  get length() {
    return this.lines.length + (this.partial ? 1 : 0);
  }

  /** The last line, if it is not complete. */
  get partial() {
    return this.#reader.partial;
  }

  get isAtEnd() {
    return this.end >= this.total;
  }

  /**
   * Adds output that follows the end, and drops as many lines from the beginning as are too many. Returns the
   * number of dropped lines.
   * @param {Piece[]} pieces
   */
  append(pieces) {
    for (const piece of pieces) {
      if (end(piece) <= this.end) continue;
      for (const line of this.#reader.push(piece)) this.lines.push(line);
      this.end = end(piece);
    }
    this.total = Math.max(this.total, this.end);
    return this.#dropFirst();
  }

  /**
   * Adds output that comes before the start, as read from an earlier offset, and drops lines from the end.
   * Returns the number of added lines.
   * @param {Piece[]} pieces
   */
  prepend(pieces) {
    let earlier = before(pieces, this.start);
    if ((earlier[0]?.offset ?? 0) > 0) earlier = fromLineStart(earlier);
    const first = earlier[0];
    if (!first) return 0;
    const lines = linesOf(earlier);
    this.lines = [...lines, ...this.lines];
    this.start = first.offset;
    this.#dropLast();
    return lines.length;
  }

  /** The index of the line with an offset, or of the last one before it. @param {number} offset */
  indexOf(offset) {
    let low = 0;
    let high = this.lines.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.lines[middle]?.offset ?? 0) <= offset) low = middle + 1;
      else high = middle;
    }
    const { partial } = this;
    return partial && partial.offset <= offset ? this.lines.length : Math.max(0, low - 1);
  }

  #dropFirst() {
    const from = Math.max(this.lines.length - MOST_LINES, this.#beyond());
    if (from <= 0) return 0;
    this.lines = this.lines.slice(from);
    this.start = this.lines[0]?.offset ?? this.end;
    return from;
  }

  /** The number of lines at the beginning that are beyond the most bytes. */
  #beyond() {
    let held = 0;
    for (let at = this.lines.length - 1; at >= 0; at -= 1) {
      held += weight(this.lines[at]);
      if (held > MOST_BYTES) return at + 1;
    }
    return 0;
  }

  #dropLast() {
    let held = 0;
    let kept = 0;
    while (kept < this.lines.length && kept < MOST_LINES && held <= MOST_BYTES) {
      held += weight(this.lines[kept]);
      kept += 1;
    }
    const next = this.lines[kept];
    if (!next) return;
    this.lines = this.lines.slice(0, kept);
    this.end = next.offset;
    this.#reader = new LineReader();
  }
}

/** @param {Line | undefined} line */
const weight = (line) => (line?.gap ? 0 : (line?.end ?? 0) - (line?.offset ?? 0));
