// The output of one task: the window of loaded lines, moved by reads and extended by a stream.

import { Delays, pause } from "../connect/delays.js";
import { CallError, isAborted } from "../connect/error.js";
import { fromLineStart, piece } from "../output/bytes.js";
import { OutputWindow } from "../output/window.js";

/** @import { OutputChunk } from "../../types/contract.js" */
/** @import { Client } from "../connect/client.js" */
/** @import { Piece } from "../output/bytes.js" */

/** Bytes that are loaded at first. */
const TAIL = 1 << 20;
/** Bytes that are loaded at a time. */
const PART = 256 << 10;
/** Bytes that are loaded before the place of a jump. */
const LEAD = 64 << 10;

/** A change of the lines. @typedef {{added: number, dropped: number}} Shift At the beginning */

export class OutputSource {
  window = new OutputWindow();
  /** True while new output is streamed to the end of the window. */
  isFollowing = false;
  isLoading = false;
  /** The failure of the latest read. */
  failure = "";
  /** Gaps by rule, as Inspect tells them. @type {{offset: number, end: number}[]} */
  gaps = [];
  #isResting = false;
  #stream = new AbortController();
  #closed = new AbortController();

  /**
   * @param {Client} client
   * @param {string} taskId
   * @param {(shift: Shift) => void} onChange
   */
  constructor(client, taskId, onChange) {
    this.client = client;
    this.taskId = taskId;
    this.onChange = onChange;
  }

  /** Loads the end of the output and follows it. */
  async follow() {
    if (this.isFollowing) return;
    this.isFollowing = true;
    const { window } = this;
    if (window.end === 0 || !window.isAtEnd) {
      await this.#load({ tailBytes: String(TAIL) }, TAIL, (pieces, next) =>
        this.#replace(pieces, next),
      );
    }
    // A pause, while the output was read, ends it.
    if (!this.#follows() || this.#closed.signal.aborted) return;
    this.#stream = new AbortController();
    void this.#run(this.#stream.signal);
    this.#changed();
  }

  pause() {
    if (!this.isFollowing) return;
    this.isFollowing = false;
    this.#stream.abort();
    this.#changed();
  }

  /** Gives the stream back, to go on with it later. */
  rest() {
    this.#isResting = this.isFollowing;
    this.pause();
  }

  wake() {
    if (this.#isResting) void this.follow();
    this.#isResting = false;
  }

  close() {
    this.#closed.abort();
    this.#stream.abort();
  }

  /** Loads the part before the window. */
  async earlier() {
    const { window } = this;
    if (this.isLoading || window.start === 0) return;
    this.pause();
    const wanted = Math.max(0, window.start - PART);
    const gap = this.gaps.find((one) => one.offset < wanted && wanted < one.end);
    /** @type {Piece[]} */
    const pieces = [];
    let offset = gap ? gap.offset : wanted;
    while (offset < window.start) {
      const from = offset;
      await this.#load({ offset: String(from) }, PART, (read, next) => {
        pieces.push(...read);
        offset = next;
      });
      if (offset === from) return;
    }
    this.#changed({ added: window.prepend(pieces), dropped: 0 });
  }

  /** Loads the part after the window. */
  async later() {
    const { window } = this;
    if (this.isLoading || this.isFollowing || window.isAtEnd) return;
    await this.#load({ offset: String(window.end) }, PART, (pieces) => {
      this.#changed({ added: 0, dropped: window.append(pieces) });
    });
  }

  /**
   * Loads the surroundings of an offset in place of the window, unless it has them.
   * @param {number} offset
   */
  async jump(offset) {
    const { window } = this;
    this.pause();
    if (window.start <= offset && offset < window.end) return;
    const from = Math.max(0, offset - LEAD);
    await this.#load({ offset: String(from) }, PART, (pieces, next) => this.#replace(pieces, next));
  }

  /** Notes the end of the output as another answer tells it. @param {number} total */
  sawEnd(total) {
    if (total <= this.window.total) return;
    this.window.total = total;
    this.#changed();
  }

  #follows() {
    return this.isFollowing;
  }

  /**
   * @param {Piece[]} pieces
   * @param {number} next
   */
  #replace(pieces, next) {
    const isInside = (pieces[0]?.offset ?? 0) > 0;
    const lines = isInside ? fromLineStart(pieces) : pieces;
    this.window.reset(lines[0]?.offset ?? next);
    this.window.append(lines);
    this.#changed({ added: 0, dropped: Infinity });
  }

  /**
   * @param {object} start
   * @param {number} maxBytes
   * @param {(pieces: Piece[], next: number) => void} use
   */
  async #load(start, maxBytes, use) {
    this.isLoading = true;
    const request = { taskId: this.taskId, ...start, maxBytes, view: "OUTPUT_VIEW_RAW" };
    try {
      const answer = await this.client.call("ReadOutput", request, { signal: this.#closed.signal });
      this.failure = "";
      this.window.total = Number(answer.endOffset);
      this.window.isComplete = answer.complete;
      use(answer.chunks.map(piece), Number(answer.nextOffset));
    } catch (error) {
      this.failure = CallError.of(error).message;
      this.#changed();
    } finally {
      this.isLoading = false;
    }
  }

  /** @param {AbortSignal} signal */
  async #run(signal) {
    const delays = new Delays();
    while (!signal.aborted && !this.window.isComplete) {
      try {
        await this.#read(signal, delays);
        break;
      } catch (thrown) {
        const error = CallError.of(thrown);
        if (isAborted(signal)) return;
        this.failure = error.message;
        this.#changed();
        if (!error.isPassing) break;
        await pause(delays.next(), signal);
      }
    }
  }

  /**
   * @param {AbortSignal} signal
   * @param {Delays} delays
   */
  async #read(signal, delays) {
    const request = {
      filter: { taskIds: [this.taskId] },
      cursors: [{ taskId: this.taskId, offset: String(this.window.end) }],
      view: "OUTPUT_VIEW_RAW",
      until: "FOLLOW_UNTIL_FINISHED",
      bookmarkInterval: "5s",
    };
    for await (const messages of this.client.stream("FollowOutput", request, signal)) {
      delays.reset();
      this.failure = "";
      /** @type {OutputChunk[]} */
      const chunks = [];
      for (const { output, ended, gone } of messages) {
        if (output) chunks.push(...output.chunks);
        if (ended ?? gone) this.window.isComplete = true;
      }
      const dropped = this.window.append(chunks.map(piece));
      this.#changed({ added: 0, dropped });
    }
  }

  /** @param {Shift} shift */
  #changed(shift = { added: 0, dropped: 0 }) {
    this.onChange(shift);
  }
}
