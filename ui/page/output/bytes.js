// Bytes of output.

/** @import { OutputChunk } from "../../types/contract.js" */
/** @typedef {"out" | "err"} Stream */
/** @typedef {{offset: number, stream: Stream, bytes: Uint8Array}} Data */
/** @typedef {{offset: number, length: number, cause: string}} Gap */
/** @typedef {Data | Gap} Piece */

/** @param {string} base64 */
export function decode(base64) {
  const native = /** @type {{fromBase64?: (text: string) => Uint8Array}} */ (
    /** @type {unknown} */ (Uint8Array)
  );
  if (native.fromBase64) return native.fromBase64(base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
  return bytes;
}

/** @param {Uint8Array} bytes */
export function encode(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) {
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }
  return btoa(text);
}

/**
 * @param {OutputChunk} chunk
 * @returns {Piece}
 */
export function piece(chunk) {
  const offset = Number(chunk.offset);
  if (chunk.gap) return { offset, length: Number(chunk.gap.length), cause: chunk.gap.cause };
  const stream = chunk.stream === "OUTPUT_STREAM_STDERR" ? "err" : "out";
  return { offset, stream, bytes: decode(chunk.data ?? "") };
}

/** @param {Piece} piece */
export const end = (piece) => piece.offset + ("bytes" in piece ? piece.bytes.length : piece.length);

/**
 * The part of pieces before an offset.
 * @param {Piece[]} pieces
 * @param {number} limit
 * @returns {Piece[]}
 */
export function before(pieces, limit) {
  return pieces
    .filter((one) => one.offset < limit)
    .map((one) => {
      if (end(one) <= limit) return one;
      const length = limit - one.offset;
      return "bytes" in one ? { ...one, bytes: one.bytes.subarray(0, length) } : { ...one, length };
    });
}

/**
 * The part of pieces that begins with a line: what comes before the first line end or gap is left out. All of
 * them, if there is no such place.
 * @param {Piece[]} pieces
 * @returns {Piece[]}
 */
export function fromLineStart(pieces) {
  for (const [index, one] of pieces.entries()) {
    if (!("bytes" in one)) return pieces.slice(index);
    const at = one.bytes.indexOf(10);
    if (at < 0) continue;
    const rest = { ...one, offset: one.offset + at + 1, bytes: one.bytes.subarray(at + 1) };
    const following = pieces.slice(index + 1);
    if (rest.bytes.length) return [rest, ...following];
    return following.length ? following : pieces;
  }
  return pieces;
}
