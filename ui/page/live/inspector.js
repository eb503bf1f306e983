// Processes, resources, ports, blocks and the screen of a task, which no event tells.

import { CallError } from "../connect/error.js";

/** @import { InspectResponse } from "../../types/contract.js" */
/** @import { Client } from "../connect/client.js" */

const INTERVAL = 5_000;
/** The least time between two calls. */
const PAUSE = 700;

export class Inspector {
  #timer = 0;
  #last = 0;
  #isBusy = false;
  #isClosed = false;
  #isOutdated = false;

  /**
   * @param {Client} client
   * @param {string} taskId
   * @param {{onAnswer: (response: InspectResponse) => void, onError: (error: CallError) => void, isLive: () => boolean}} hooks
   */
  constructor(client, taskId, hooks) {
    this.client = client;
    this.taskId = taskId;
    this.hooks = hooks;
    void this.#call();
  }

  /** Inspects soon: the task has changed. */
  refresh() {
    if (this.#isClosed) return;
    // The answer to come may be older than the change.
    if (this.#isBusy) this.#isOutdated = true;
    else this.#plan(Math.max(0, this.#last + PAUSE - Date.now()));
  }

  close() {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  /** @param {number} delay */
  #plan(delay) {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => void this.#call(), delay);
  }

  async #call() {
    if (document.hidden && this.#last) {
      this.#plan(INTERVAL);
      return;
    }
    this.#isBusy = true;
    this.#isOutdated = false;
    this.#last = Date.now();
    const request = {
      taskId: this.taskId,
      outputTailBytes: 0,
      blockCount: 64,
      includeScreen: true,
    };
    try {
      const response = await this.client.call("Inspect", request);
      if (!this.#stopped()) this.hooks.onAnswer(response);
    } catch (error) {
      if (!this.#stopped()) this.hooks.onError(CallError.of(error));
    }
    this.#isBusy = false;
    if (this.#stopped()) return;
    if (this.#hasChanged()) this.refresh();
    else if (this.hooks.isLive()) this.#plan(INTERVAL);
  }

  #hasChanged() {
    return this.#isOutdated;
  }

  #stopped() {
    return this.#isClosed;
  }
}
