// Calls and streams of the server, by the Connect protocol in JSON.

import { CallError } from "./error.js";
import { FrameReader, framed } from "./frames.js";

/** @import { Calls, Streams } from "../../types/contract.js" */

const SERVICE = "/heeler.v1.BackgroundTasks/";
const LONGEST_CALL = 60_000;
/** The longest silence of a stream. Its bookmarks come more often. */
const SILENCE = 30_000;

/** @typedef {{signal?: AbortSignal | undefined, timeout?: number}} CallOptions */

export class Client {
  /** True once an answer has said that this address refuses calls that change something. */
  isReadOnly = false;

  /** @param {() => string} token */
  constructor(token) {
    this.token = token;
  }

  /**
   * Makes a call.
   * @template {keyof Calls} M
   * @param {M} method
   * @param {Calls[M][0]} request
   * @param {CallOptions} [options]
   * @returns {Promise<Calls[M][1]>}
   */
  async call(method, request, { signal, timeout = LONGEST_CALL } = {}) {
    const limit = AbortSignal.timeout(timeout);
    try {
      const response = await this.#post(method, "application/json", JSON.stringify(request), {
        signal: signal ? AbortSignal.any([signal, limit]) : limit,
      });
      /** @type {unknown} */
      const json = await response.json();
      if (!response.ok) throw CallError.from(json, response.status);
      return /** @type {Calls[M][1]} */ (json);
    } catch (error) {
      throw CallError.of(error);
    }
  }

  /**
   * Makes a call that answers with a stream, and returns its messages as they arrive: those of one read of the
   * connection together.
   * @template {keyof Streams} M
   * @param {M} method
   * @param {object} request
   * @param {AbortSignal} signal
   * @returns {AsyncGenerator<Streams[M][], void, void>}
   */
  async *stream(method, request, signal) {
    const silence = new AbortController();
    const abort = () => silence.abort(new DOMException("silent", "TimeoutError"));
    let timer = setTimeout(abort, SILENCE);
    try {
      const response = await this.#post(method, "application/connect+json", framed(request), {
        signal: AbortSignal.any([signal, silence.signal]),
      });
      if (!response.ok || !response.body) {
        throw CallError.from(await response.json().catch(() => null), response.status);
      }
      const frames = new FrameReader();
      const reader = response.body.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) throw new CallError("unavailable", "the stream broke");
        clearTimeout(timer);
        timer = setTimeout(abort, SILENCE);
        const arrived = frames.push(value);
        const messages = arrived.filter((frame) => !frame.isEnd).map((frame) => frame.message);
        if (messages.length) yield /** @type {Streams[M][]} */ (messages);
        const end = arrived.find((frame) => frame.isEnd)?.message;
        if (end) {
          const { error } = /** @type {{error?: unknown}} */ (end);
          if (error) throw CallError.from(error, 200);
          return;
        }
      }
    } catch (error) {
      throw CallError.of(error);
    } finally {
      clearTimeout(timer);
      silence.abort();
    }
  }

  /**
   * @param {string} method
   * @param {string} type
   * @param {string | Uint8Array<ArrayBuffer>} body
   * @param {{signal: AbortSignal}} options
   */
  async #post(method, type, body, { signal }) {
    const headers = {
      "content-type": type,
      "connect-protocol-version": "1",
      authorization: `Bearer ${this.token()}`,
    };
    const response = await fetch(SERVICE + method, { method: "POST", headers, body, signal });
    this.isReadOnly = response.headers.get("heeler-access") === "read-only";
    return response;
  }
}
