import assert from "node:assert/strict";
import test from "node:test";
import { CallError } from "../../page/connect/error.js";
import { InputWriter } from "../../page/live/input.js";
import { Calls, NOT_SERVING, settled, until } from "./calls.js";

// Both belong to one tab.
const storage = new Map();
globalThis.sessionStorage = {
  getItem: (key) => storage.get(key) ?? null,
  setItem: (key, value) => storage.set(key, value),
};

/** The input of a task, by the rules of the server. */
class Input {
  given = "";
  writer = "";

  write({ writerId = "", offset, data = "", takeOver = false, close = false }) {
    const bytes = atob(data);
    if (bytes || takeOver || close) {
      if (this.writer && this.writer !== writerId && !takeOver) throw refusal("INPUT_HELD");
      this.writer = writerId;
    }
    const from = Number(offset ?? this.given.length);
    if (from > this.given.length) throw refusal("INPUT_GAP");
    this.given += bytes.slice(this.given.length - from);
    return {
      offset: String(this.given.length),
      closed: close,
      writerId: this.writer,
      takenBytes: bytes.length,
    };
  }
}

const refusal = (reason) =>
  CallError.from({
    code: "failed_precondition",
    details: [{ type: "google.rpc.ErrorInfo", debug: { reason } }],
  });

/** Lets the input answer calls, each when `before` was called with it, until none is left. */
async function serve(client, input, before = () => {}) {
  for (let call = client.open[0]; call; call = client.open[0]) {
    try {
      before(call.request);
      call.answer(input.write(call.request));
    } catch (error) {
      call.fail(error);
    }
    await settled();
  }
}

const bytes = (text) => new TextEncoder().encode(text);

function made() {
  const client = new Calls();
  const input = new Input();
  return { client, input, writer: new InputWriter(client, "t", () => {}) };
}

test("a line that is written while the server starts arrives", async () => {
  const { client, input, writer } = made();
  writer.write(bytes("line\n"));
  await client.fail(NOT_SERVING);
  assert.deepEqual([writer.failure, writer.waiting], [NOT_SERVING.message, 5]);
  await until(() => client.open.length);
  await serve(client, input);
  assert.deepEqual([input.given, writer.failure, writer.waiting], ["line\n", "", 0]);
});

test("a write whose answer is lost is given once", async () => {
  const { client, input, writer } = made();
  let isLost = false;
  writer.write(bytes("one\n"));
  writer.write(bytes("two\n"));
  await until(() => client.open.length);
  const lose = (request) => {
    if (isLost || !request.data) return;
    isLost = true;
    input.write(request);
    throw NOT_SERVING;
  };
  await serve(client, input, lose);
  await until(() => client.open.length);
  await serve(client, input);
  assert.equal(input.given, "one\ntwo\n");
});

test("bytes of another client before the first write take the place of none", async () => {
  const { client, input, writer } = made();
  writer.write(bytes("mine\n"));
  await until(() => client.open.length);
  let calls = 0;
  await serve(client, input, () => {
    calls += 1;
    if (calls === 2) input.write({ data: btoa("other\n") });
  });
  assert.deepEqual([input.given, writer.isHeld], ["other\nmine\n", false]);
});

test("a late write of an abandoned writer takes the place of no byte of the next one", async () => {
  const { client, input, writer } = made();
  writer.write(bytes("late"));
  const late = await until(() => {
    const [call] = client.open;
    if (call?.request.data) return call;
    call?.answer(input.write(call.request));
  });
  client.open = [];
  const next = new InputWriter(client, "t", () => {});
  next.write(bytes("next"));
  await until(() => client.open.length);
  await serve(client, input, ({ data }) => {
    if (data) assert.throws(() => input.write(late.request), { reason: "INPUT_HELD" });
  });
  assert.equal(input.given, "next");
});

test("the input of another client is left to it until it is taken over", async () => {
  const { client, input, writer } = made();
  input.write({ writerId: "other", data: btoa("x") });
  writer.open();
  writer.write(bytes("mine"));
  await until(() => client.open.length);
  await serve(client, input);
  assert.deepEqual([input.given, input.writer, writer.isHeld], ["x", "other", true]);
  assert.equal(writer.waiting, 0);
  writer.takeOver();
  writer.write(bytes("mine"));
  await until(() => client.open.length);
  await serve(client, input);
  assert.deepEqual([input.given, writer.isHeld], ["xmine", false]);
});
