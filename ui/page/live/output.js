// The output of one task: the window of loaded lines, moved by reads and extended by a stream.

import { Delays, pause } from "../connect/delays.js";
import { CallError, isAborted } from "../connect/error.js";
import { fromLineStart, piece } from "../output/bytes.js";
import { OutputWindow } from "../output/window.js";

/** @import { OutputChunk, ReadOutputResponse } from "../../types/contract.js" */
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
  /** The failure of the latest read. One that may pass is followed by another read. */
  failure = "";
  /** Gaps by rule, as Inspect tells them. @type {{offset: number, end: number}[]} */
  gaps = [];
  #isResting = false;
  /** True if a refusal has ended the following. */
  #isRefused = false;
  /** Ends the loads of the latest navigation: only one moves the window at a time. */
  #navigation = new AbortController();
  #stream = new AbortController();

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
    const { window } = this;
    const signal = this.#begin();
    this.isFollowing = true;
    if (window.end === 0 || !window.isAtEnd) {
      const answer = await this.#load({ tailBytes: String(TAIL) }, TAIL, signal);
      if (!answer) return;
      this.#replace(answer);
    }
    // A pause, while the output was read, ends it.
    if (!this.#follows()) return;
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
    this.#isResting ||= this.isFollowing;
    this.pause();
  }

  wake() {
    if (this.#isResting) void this.follow();
    this.#isResting = false;
  }

  /** Goes on after a refusal: the connection is new, and the token may be another one. */
  retry() {
    if (!this.failure || this.isLoading) return;
    this.failure = "";
    if (this.#isRefused) void this.follow();
    else this.#changed();
  }

  close() {
    this.#begin();
  }

  /** Loads the part before the window. */
  async earlier() {
    const { window } = this;
    const limit = window.start;
    if (this.isLoading || limit === 0) return;
    const signal = this.#begin();
    const wanted = Math.max(0, limit - PART);
    const gap = this.gaps.find((one) => one.offset < wanted && wanted < one.end);
    /** @type {Piece[]} */
    const pieces = [];
    let offset = gap ? gap.offset : wanted;
    while (offset < limit) {
      const answer = await this.#load({ offset: String(offset) }, PART, signal);
      if (!answer || Number(answer.nextOffset) <= offset) return;
      pieces.push(...answer.chunks.map(piece));
      offset = Number(answer.nextOffset);
    }
    this.#changed({ added: window.prepend(pieces), dropped: 0 });
  }

  /** Loads the part after the window. */
  async later() {
    const { window } = this;
    if (this.isLoading || this.isFollowing || window.isAtEnd) return;
    const answer = await this.#load({ offset: String(window.end) }, PART, this.#begin());
    if (answer) this.#changed({ added: 0, dropped: window.append(answer.chunks.map(piece)) });
  }

  /**
   * Loads the surroundings of an offset in place of the window, unless it has them.
   * @param {number} offset
   */
  async jump(offset) {
    const { window } = this;
    const signal = this.#begin();
    if (window.start <= offset && offset < window.end) {
      this.#changed();
      return;
    }
    const from = Math.max(0, offset - LEAD);
    const answer = await this.#load({ offset: String(from) }, PART, signal);
    if (answer) this.#replace(answer);
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

  /** Ends the loads and the stream, and returns the signal of the next ones. */
  #begin() {
    this.#navigation.abort();
    this.#stream.abort();
    this.#navigation = new AbortController();
    this.isFollowing = false;
    this.isLoading = false;
    this.#isRefused = false;
    return this.#navigation.signal;
  }

  /** @param {ReadOutputResponse} answer */
  #replace({ chunks, nextOffset }) {
    const pieces = chunks.map(piece);
    const isInside = (pieces[0]?.offset ?? 0) > 0;
    const lines = isInside ? fromLineStart(pieces) : pieces;
    this.window.reset(lines[0]?.offset ?? Number(nextOffset));
    this.window.append(lines);
    this.#changed({ added: 0, dropped: Infinity });
  }

  /**
   * Reads until there is an answer. Returns undefined if the read is refused, or another navigation has begun.
   * @param {object} start
   * @param {number} maxBytes
   * @param {AbortSignal} signal
   */
  async #load(start, maxBytes, signal) {
    const request = { taskId: this.taskId, ...start, maxBytes, view: "OUTPUT_VIEW_RAW" };
    const delays = new Delays();
    this.isLoading = true;
    while (!signal.aborted) {
      try {
        const answer = await this.client.call("ReadOutput", request, { signal });
        if (isAborted(signal)) break;
        this.isLoading = false;
        this.failure = "";
        this.window.total = Number(answer.endOffset);
        this.window.isComplete = answer.complete;
        return answer;
      } catch (thrown) {
        if (isAborted(signal)) break;
        if (!this.#isPassing(thrown)) break;
        await pause(delays.next(), signal);
      }
    }
    return undefined;
  }

  /** @param {AbortSignal} signal */
  async #run(signal) {
    const delays = new Delays();
    while (!signal.aborted && !this.window.isComplete) {
      try {
        await this.#read(signal, delays);
        break;
      } catch (thrown) {
        if (isAborted(signal) || !this.#isPassing(thrown)) return;
        await pause(delays.next(), signal);
      }
    }
  }

  /**
   * Notes a failure, and returns whether another attempt may succeed.
   * @param {unknown} thrown
   */
  #isPassing(thrown) {
    const error = CallError.of(thrown);
    this.failure = error.message;
    if (!error.isPassing) {
      this.#isRefused = this.isFollowing;
      this.isFollowing = false;
      this.isLoading = false;
    }
    this.#changed();
    return error.isPassing;
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
      if (isAborted(signal)) return;
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
