// Frames of a stream: a byte of flags, the length in four bytes, and JSON.

const PREFIX = 5;
const END = 2;

/**
 * @typedef {object} Frame
 * @property {boolean} isEnd The last frame, whose message has the error if there is one
 * @property {unknown} message
 */

/**
 * A message in a frame, as the body of a request.
 * @param {unknown} message
 */
export function framed(message) {
  const json = new TextEncoder().encode(JSON.stringify(message));
  const bytes = new Uint8Array(PREFIX + json.length);
  new DataView(bytes.buffer).setUint32(1, json.length);
  bytes.set(json, PREFIX);
  return bytes;
}

/** Splits the bytes of a stream, in pieces of any size, into frames. */
export class FrameReader {
  /** @type {Uint8Array[]} */
  #pieces = [];
  #length = 0;
  #needed = PREFIX;
  #decoder = new TextDecoder();

  /**
   * Adds bytes, and returns the frames that are complete now.
   * @param {Uint8Array} bytes
   * @returns {Frame[]}
   */
  push(bytes) {
    this.#pieces.push(bytes);
    this.#length += bytes.length;
    /** @type {Frame[]} */
    const frames = [];
    if (this.#length < this.#needed) return frames;
    const all = this.#joined();
    let at = 0;
    this.#needed = PREFIX;
    while (all.length - at >= PREFIX) {
      const view = new DataView(all.buffer, all.byteOffset + at, PREFIX);
      const length = PREFIX + view.getUint32(1);
      if (all.length - at < length) {
        this.#needed = length;
        break;
      }
      const json = this.#decoder.decode(all.subarray(at + PREFIX, at + length));
      frames.push({ isEnd: (view.getUint8(0) & END) !== 0, message: JSON.parse(json || "{}") });
      at += length;
    }
    const rest = all.subarray(at);
    this.#pieces = rest.length ? [rest] : [];
    this.#length = rest.length;
    return frames;
  }

  #joined() {
    const [first] = this.#pieces;
    if (this.#pieces.length === 1 && first) return first;
    const all = new Uint8Array(this.#length);
    let at = 0;
    for (const piece of this.#pieces) {
      all.set(piece, at);
      at += piece.length;
    }
    return all;
  }
}
