// A client without a server: a test answers its calls.
import { CallError } from "../../page/connect/error.js";

/** Completes when everything that waits for an answer so far has gone on. */
export const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Returns the value of `ask`, once it has one. */
export async function until(ask) {
  for (;;) {
    const value = ask();
    if (value) return value;
    await settled();
  }
}

export class Calls {
  /** The calls without an answer, oldest first. */
  open = [];
  /** The streams that have begun, ended ones included. */
  streams = [];

  call(method, request, { signal } = {}) {
    return new Promise((resolve, reject) => {
      const done = (settle) => (value) => {
        this.open = this.open.filter((one) => one !== call);
        settle(value);
      };
      const call = { method, request, answer: done(resolve), fail: done(reject) };
      this.open.push(call);
      signal?.addEventListener("abort", () => call.fail(new CallError("canceled", "ended")));
    });
  }

  async *stream(method, request, signal) {
    const waiting = [];
    let wake = () => {};
    const stream = { method, request, signal };
    const put = (step) => {
      waiting.push(step);
      wake();
    };
    stream.send = (...messages) => put({ messages });
    stream.fail = (error) => put({ error });
    signal.addEventListener("abort", () => stream.fail(new CallError("canceled", "ended")));
    this.streams.push(stream);
    for (;;) {
      const step = waiting.shift();
      if (step?.error) throw step.error;
      if (step) yield step.messages;
      else await new Promise((resolve) => (wake = resolve));
    }
  }

  /** Answers the call that is open, which is the only one. */
  async answer(value) {
    const call = await until(() => this.open[0]);
    call.answer(typeof value === "function" ? value(call.request) : value);
    await settled();
    return call.request;
  }

  /** Refuses the call that is open. */
  async fail(error) {
    (await until(() => this.open[0])).fail(error);
    await settled();
  }

  /** The streams that go on. */
  get running() {
    return this.streams.filter(({ signal }) => !signal.aborted);
  }
}

/** A failure that is over soon, as of a server that starts. */
export const NOT_SERVING = CallError.from({
  code: "unavailable",
  message: "the server is starting",
  details: [{ type: "google.rpc.ErrorInfo", debug: { reason: "NOT_SERVING" } }],
});

export const NO_TOKEN = new CallError("unauthenticated", "the token is missing");
