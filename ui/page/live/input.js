// Writes to the input of a task: in order, and each byte once.

import { CallError } from "../connect/error.js";
import { pause } from "../connect/delays.js";
import { encode } from "../output/bytes.js";

/** @import { Client } from "../connect/client.js" */

/** The time in which the offset of the latest answer is used without another question. */
const FRESH = 2_000;
const KEY = "heeler-writer";

/** The id of this tab, which stays through a reload: so the page keeps the input that it has. */
function writerId() {
  try {
    const known = sessionStorage.getItem(KEY);
    if (known) return known;
  } catch {
    // Storage is off: the id lasts as long as the page.
  }
  const id = `page-${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
  try {
    sessionStorage.setItem(KEY, id);
  } catch {
    // As above.
  }
  return id;
}

export class InputWriter {
  /** The number of bytes that the task was given; absent until the first answer. @type {number | undefined} */
  offset;
  isClosed = false;
  /** True if another writer has the input. */
  isHeld = false;
  failure = "";
  /** Bytes that are not taken yet. */
  waiting = 0;
  #id = writerId();
  #asked = 0;
  #last = Promise.resolve();

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

  /** Asks for the state of the input. */
  open() {
    this.#then(() => this.#call({}));
  }

  /** @param {Uint8Array} bytes */
  write(bytes) {
    this.waiting += bytes.length;
    this.#then(() => this.#send(bytes));
    this.onChange();
  }

  end() {
    this.#then(() => this.#call({ writerId: this.#id, close: true }));
  }

  takeOver() {
    this.isHeld = false;
    this.#then(() => this.#call({ writerId: this.#id, takeOver: true }));
  }

  /** @param {() => Promise<void>} step */
  #then(step) {
    this.#last = this.#last
      .then(step)
      .catch((/** @type {unknown} */ thrown) => this.#failed(CallError.of(thrown)))
      .then(this.onChange);
  }

  /** @param {CallError} error */
  #failed(error) {
    this.failure = error.message;
    if (error.is("INPUT_HELD", "INPUT_TAKEN_OVER")) this.isHeld = true;
    if (error.is("INPUT_CLOSED", "TASK_FINISHED")) this.isClosed = true;
  }

  /** @param {Uint8Array} bytes */
  async #send(bytes) {
    let rest = bytes;
    this.waiting -= bytes.length;
    // Another tab with the same id may have written: its bytes are not to be written over.
    if (this.offset === undefined || Date.now() - this.#asked > FRESH) await this.#call({});
    for (let attempt = 0; rest.length > 0;) {
      const at = this.offset ?? 0;
      const data = encode(rest.subarray(0, 512 << 10));
      try {
        await this.#call({ writerId: this.#id, offset: String(at), data, wait: "20s" });
        rest = rest.subarray(Math.max(0, (this.offset ?? at) - at));
        attempt = 0;
      } catch (thrown) {
        const error = CallError.of(thrown);
        // The bytes may have arrived: the same offset again writes none twice.
        if (!error.isPassing || error.reason || attempt >= 20) throw error;
        attempt += 1;
        await pause(500);
      }
    }
  }

  /** @param {object} request */
  async #call(request) {
    const answer = await this.client.call("WriteInput", { taskId: this.taskId, ...request });
    this.#asked = Date.now();
    this.offset = Number(answer.offset);
    this.isClosed = answer.closed;
    this.isHeld = answer.writerId !== "" && answer.writerId !== this.#id;
    this.failure = "";
  }
}
