/** The numbered messages of a worker, until the daemon has acknowledged them. */
import type { ProgressUpdate, WorkerResult } from "../gen/heeler/v1/index.js";

/** Messages that may be without an acknowledgement. Further ones wait. */
const UNACKNOWLEDGED = 256;

/** A message that is sent again until it is acknowledged. */
export type Item =
  | { readonly case: "progress"; readonly value: ProgressUpdate }
  | { readonly case: "result"; readonly value: WorkerResult };

/** An item with its number. */
export interface Numbered {
  readonly sequence: bigint;
  readonly item: Item;
}

export class Outbox {
  #items: Numbered[] = [];
  #latest = 0n;
  #acknowledged = 0n;

  get hasRoom(): boolean {
    return this.#items.length < UNACKNOWLEDGED;
  }

  get hasResult(): boolean {
    return this.#items.some(({ item }) => item.case === "result");
  }

  get isEmpty(): boolean {
    return this.#items.length === 0;
  }

  /** The number up to which messages are acknowledged. */
  get acknowledged(): bigint {
    return this.#acknowledged;
  }

  /** Numbers a message and keeps it. Returns its number. */
  push(item: Item): bigint {
    this.#latest += 1n;
    this.#items.push({ sequence: this.#latest, item });
    return this.#latest;
  }

  /** The first message after a number. */
  after(sequence: bigint): Numbered | undefined {
    return this.#items.find((one) => one.sequence > sequence);
  }

  /** Forgets the messages up to a number. Returns true if one of them was the result. */
  acknowledge(sequence: bigint): boolean {
    const hadResult = this.#items.some(
      (one) => one.sequence <= sequence && one.item.case === "result",
    );
    this.#items = this.#items.filter((one) => one.sequence > sequence);
    this.#acknowledged = sequence;
    return hadResult;
  }
}
