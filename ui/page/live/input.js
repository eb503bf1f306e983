// Writes to the input of a task: in order, and each byte once, also across a restart of the server.

import { CallError } from "../connect/error.js";
import { Delays, pause } from "../connect/delays.js";
import { encode } from "../output/bytes.js";

/** @import { WriteInputResponse } from "../../types/contract.js" */
/** @import { Client } from "../connect/client.js" */

const KEY = "heeler-writer";
/** The most bytes of one call. */
const PART = 512 << 10;

const random = () => crypto.getRandomValues(new Uint32Array(2)).join("-");

/** The id of this tab, the same after a reload: so the page knows its own earlier writers. */
function tabId() {
  try {
    const known = sessionStorage.getItem(KEY);
    if (known) return known;
  } catch {
    // Storage is off: the id lasts as long as the page.
  }
  const id = `page-${random()}`;
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
  /** True if a writer of another tab or client has the input. */
  isHeld = false;
  failure = "";
  /** Bytes that are not taken yet. */
  waiting = 0;
  #tab = tabId();
  /** Its own: with a shared one, the server would take bytes of this writer for repeats of the other one's. */
  #id = `${this.#tab}-${random()}`;
  /** True if this writer has the input, so that `offset` is where its next byte goes. */
  #isOwner = false;
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
    this.#then(async () => {
      await this.#own();
      await this.#call({ writerId: this.#id, close: true });
    });
  }

  takeOver() {
    this.isHeld = false;
    this.#then(() => this.#claim());
  }

  /** @param {() => Promise<unknown>} step */
  #then(step) {
    this.#last = this.#last
      .then(step)
      .catch((/** @type {unknown} */ thrown) => this.#failed(CallError.of(thrown)))
      .then(this.onChange);
  }

  /** @param {CallError} error */
  #failed(error) {
    this.#isOwner = false;
    this.failure = error.message;
    if (error.is("INPUT_HELD", "INPUT_TAKEN_OVER")) this.isHeld = true;
    if (error.is("INPUT_CLOSED", "TASK_FINISHED")) this.isClosed = true;
  }

  /** @param {Uint8Array} bytes */
  async #send(bytes) {
    let rest = bytes;
    try {
      await this.#own();
      while (rest.length > 0) {
        const part = rest.subarray(0, PART);
        const offset = String(this.offset ?? 0);
        const write = { writerId: this.#id, offset, data: encode(part), wait: "20s" };
        const { takenBytes } = await this.#call(write);
        rest = rest.subarray(takenBytes);
        this.waiting -= takenBytes;
        this.onChange();
      }
    } finally {
      this.waiting -= rest.length;
    }
  }

  /** Claims the input if it is free, or an earlier writer of this tab has it. */
  async #own() {
    if (this.#isOwner) return;
    const { writerId } = await this.#call({});
    // Without a claim another writer's bytes could take the place of this one's before they are written.
    if (this.#isOfTab(writerId)) await this.#claim();
  }

  async #claim() {
    await this.#call({ writerId: this.#id, takeOver: true });
    this.#isOwner = true;
  }

  /** @param {string} writerId */
  #isOfTab(writerId) {
    return writerId === "" || writerId.startsWith(`${this.#tab}-`);
  }

  /**
   * Makes a call until it is answered. Each may be repeated: a write has an offset, so the server writes no byte of it
   * twice.
   * @param {object} request
   * @returns {Promise<WriteInputResponse>}
   */
  async #call(request) {
    const delays = new Delays();
    for (;;) {
      try {
        const answer = await this.client.call("WriteInput", { taskId: this.taskId, ...request });
        this.offset = Number(answer.offset);
        this.isClosed = answer.closed;
        this.isHeld = !this.#isOfTab(answer.writerId);
        this.failure = "";
        return answer;
      } catch (thrown) {
        const error = CallError.of(thrown);
        if (!error.isPassing || error.is("INPUT_TAKEN_OVER")) throw error;
        this.failure = error.message;
        this.onChange();
        await pause(delays.next());
      }
    }
  }
}

/** The writers of this page. Each outlives the view of its task, so that what was typed arrives. */
export class InputWriters {
  /** @type {Map<string, InputWriter>} */
  #writers = new Map();

  /**
   * @param {Client} client
   * @param {() => void} onChange
   */
  constructor(client, onChange) {
    this.client = client;
    this.onChange = onChange;
  }

  /** @param {string} taskId */
  of(taskId) {
    let writer = this.#writers.get(taskId);
    if (!writer)
      this.#writers.set(taskId, (writer = new InputWriter(this.client, taskId, this.onChange)));
    return writer;
  }

  /**
   * Forgets the tasks that are not live, once their writers are done.
   * @param {ReadonlyMap<string, unknown>} live
   */
  retain(live) {
    for (const [id, { waiting }] of this.#writers)
      if (!live.has(id) && waiting === 0) this.#writers.delete(id);
  }
}
