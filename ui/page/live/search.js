// The search in the whole output of a task, by the server.

import { CallError } from "../connect/error.js";

/** @import { Client } from "../connect/client.js" */

/** The most lines that are found. */
export const MOST_FOUND = 10_000;

export class Search {
  query = "";
  /** The offsets of the lines found, in order. @type {number[]} */
  found = [];
  isRunning = false;
  failure = "";
  #call = new AbortController();

  /**
   * @param {Client} client
   * @param {string} taskId
   * @param {() => void} onChange
   */
  constructor(client, taskId, onChange) {
    this.client = client;
    this.taskId = taskId;
    this.onChange = onChange;
  }

  get isFull() {
    return this.found.length >= MOST_FOUND;
  }

  /**
   * Finds the lines that contain a text, in any case.
   * @param {string} query
   */
  async start(query) {
    this.stop();
    this.query = query;
    this.isRunning = query !== "";
    this.onChange();
    if (!query) return;
    const { signal } = this.#call;
    try {
      await this.#read(`(?i)${escaped(query)}`, signal);
    } catch (thrown) {
      const error = CallError.of(thrown);
      if (signal.aborted) return;
      this.failure = error.message;
    }
    if (signal.aborted) return;
    this.isRunning = false;
    this.onChange();
  }

  stop() {
    this.#call.abort();
    this.#call = new AbortController();
    this.query = "";
    this.found = [];
    this.isRunning = false;
    this.failure = "";
  }

  /**
   * @param {string} include
   * @param {AbortSignal} signal
   */
  async #read(include, signal) {
    let offset = "0";
    for (;;) {
      const request = {
        taskId: this.taskId,
        offset,
        maxBytes: PART,
        view: "OUTPUT_VIEW_PLAIN",
        filter: { include },
      };
      const answer = await this.client.call("ReadOutput", request, { signal, timeout: LONGEST });
      for (const chunk of answer.chunks) if (!chunk.gap) this.found.push(Number(chunk.offset));
      this.onChange();
      const isOver = Number(answer.nextOffset) >= Number(answer.endOffset);
      if (isOver || this.isFull || answer.nextOffset === offset) return;
      offset = answer.nextOffset;
    }
  }
}

const PART = 256 << 10;
/** The search reads all of the output, however long it is. */
const LONGEST = 300_000;

/** @param {string} text */
const escaped = (text) => text.replace(/[\\.+*?()|[\]{}^$#&\-~]/g, "\\$&");
