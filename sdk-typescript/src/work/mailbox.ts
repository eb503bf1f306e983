/** The messages to a task that its worker has not taken yet, and the receipt of those it has. */
import type { TaskMessage } from "../gen/heeler/v1/index.js";
import type { Change } from "./change.js";

export class Mailbox {
  /** The daemon keeps a hundred messages without a receipt, and refuses further ones. */
  readonly #waiting: TaskMessage[] = [];
  /** The number of the latest message that has arrived. */
  #arrived = 0n;
  /** The number of the latest message that was handed out. */
  #taken = 0n;
  #hasReceipt = false;
  #isClosed = false;

  constructor(private readonly change: Change) {}

  /** Keeps a message. After a reconnect the daemon repeats those without a receipt. */
  put(message: TaskMessage): void {
    if (message.number > this.#arrived) {
      this.#arrived = message.number;
      this.#waiting.push(message);
    }
  }

  /** No message arrives any more. */
  close(): void {
    this.#isClosed = true;
  }

  /** Hands out the next message, each once; undefined after the last one. */
  async take(signal: AbortSignal): Promise<TaskMessage | undefined> {
    for (;;) {
      const message = this.#waiting.shift();
      if (message !== undefined) {
        this.#taken = message.number;
        this.#hasReceipt = true;
        this.change.notify();
        return message;
      }
      if (this.#isClosed) {
        return undefined;
      }
      await this.change.next(signal);
    }
  }

  get hasReceipt(): boolean {
    return this.#hasReceipt;
  }

  /** The number of a receipt to send. */
  takeReceipt(): bigint | undefined {
    const hasReceipt = this.#hasReceipt;
    this.#hasReceipt = false;
    return hasReceipt ? this.#taken : undefined;
  }

  /** Sends the latest receipt again. */
  repeatReceipt(): void {
    this.#hasReceipt = this.#taken > 0n;
  }
}
