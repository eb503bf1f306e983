// The use of CPU and memory by tasks over the last minutes.

import { seconds } from "../text/units.js";

/** @import { InspectResponse } from "../../types/contract.js" */
/** @typedef {{time: number, cpuSeconds: number, memory: number}} Reading */

const KEPT = 40;

/** The readings of one task. */
export class Samples {
  /** CPU of one core in percent: one value fewer than readings. @type {number[]} */
  cpu = [];
  /** In bytes. @type {number[]} */
  memory = [];
  /** @type {number[]} */
  ports = [];
  processes = 0;
  /** The time of the latest reading. */
  time = 0;
  #cpuSeconds = 0;

  /**
   * @param {InspectResponse} response
   * @param {number} now
   */
  add(response, now) {
    const { resources } = response;
    const used = seconds(resources?.cpuTime);
    if (this.time && now > this.time) {
      const percent = ((used - this.#cpuSeconds) / (now - this.time)) * 100_000;
      keep(this.cpu, Math.max(0, percent));
    }
    keep(this.memory, Number(resources?.memoryBytes ?? 0));
    this.processes = resources?.processCount ?? 0;
    this.ports = [...new Set(response.ports.map((port) => port.port))].sort((a, b) => a - b);
    this.time = now;
    this.#cpuSeconds = used;
  }
}

/**
 * @param {number[]} values
 * @param {number} value
 */
function keep(values, value) {
  values.push(value);
  if (values.length > KEPT) values.shift();
}
