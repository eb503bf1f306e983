// The use of CPU and memory by the tasks that are in view: no event tells it, so they are inspected in turn.

import { Samples } from "../model/samples.js";

/** @import { Client } from "../connect/client.js" */

/** The time after which a task in view is inspected again. */
const INTERVAL = 5_000;
/** The time between two calls: at most four a second, whatever is in view. */
const PAUSE = 250;

export class Sampler {
  /** @type {Map<string, Samples>} */
  samples = new Map();
  #isBusy = false;
  #failedUntil = 0;

  /**
   * @param {Client} client
   * @param {() => string[]} inView The ids of tasks with processes
   * @param {() => void} onChange
   */
  constructor(client, inView, onChange) {
    this.client = client;
    this.inView = inView;
    this.onChange = onChange;
    setInterval(() => void this.#next(), PAUSE);
  }

  /** @param {string} id */
  of(id) {
    let samples = this.samples.get(id);
    if (!samples) this.samples.set(id, (samples = new Samples()));
    return samples;
  }

  /**
   * Forgets the tasks that are not live.
   * @param {ReadonlyMap<string, unknown>} live
   */
  retain(live) {
    for (const id of this.samples.keys()) if (!live.has(id)) this.samples.delete(id);
  }

  async #next() {
    const now = Date.now();
    if (this.#isBusy || document.hidden || now < this.#failedUntil) return;
    const due = this.inView().find((id) => now - (this.samples.get(id)?.time ?? 0) >= INTERVAL);
    if (!due) return;
    this.#isBusy = true;
    try {
      const request = { taskId: due, outputTailBytes: 0, blockCount: 0 };
      const response = await this.client.call("Inspect", request, { timeout: 10_000 });
      this.of(due).add(response, Date.now());
      this.onChange();
    } catch {
      // The event stream shows a break; a task that is gone is out of view soon.
      this.#failedUntil = now + INTERVAL;
    } finally {
      this.#isBusy = false;
    }
  }
}
