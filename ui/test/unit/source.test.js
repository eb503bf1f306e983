import assert from "node:assert/strict";
import test from "node:test";
import { OutputSource } from "../../page/live/output.js";
import { Calls, NO_TOKEN, NOT_SERVING, settled, until } from "./calls.js";

const LINE = 100;
/** The output of the task: lines of 100 bytes. */
const TOTAL = 1_000_000 * LINE;

const text = (number) => `${`${number}`.padStart(LINE - 1, "0")}\n`;

/** The answer to a read: whole lines from its offset on. */
function read({ offset, tailBytes, maxBytes }) {
  const first = Math.ceil(Number(offset ?? TOTAL - Number(tailBytes)) / LINE);
  const count = Math.min(Math.floor(maxBytes / LINE), TOTAL / LINE - first);
  const lines = Array.from({ length: count }, (_, at) => text(first + at)).join("");
  const chunk = { offset: String(first * LINE), stream: "OUTPUT_STREAM_STDOUT", data: btoa(lines) };
  return {
    chunks: [chunk],
    nextOffset: String((first + count) * LINE),
    endOffset: String(TOTAL),
    complete: false,
  };
}

function made() {
  const client = new Calls();
  return { client, source: new OutputSource(client, "t", () => {}) };
}

/** A source that follows the output, with the end of it loaded. */
async function following() {
  const { client, source } = made();
  void source.follow();
  await client.answer(read);
  return { client, source };
}

/** The offsets of the loaded lines leave nothing out. */
function isWhole({ window }) {
  const offsets = window.lines.map((line) => line.offset);
  assert.deepEqual(
    offsets,
    offsets.map((_, at) => window.start + at * LINE),
  );
  assert.equal(window.end, window.start + offsets.length * LINE);
}

test("a jump during a load of earlier lines ends the load", async () => {
  const { client, source } = await following();
  void source.earlier();
  const [earlier] = client.open;
  void source.jump(0);
  await settled();
  assert.equal(client.open.length, 1, "the load of earlier lines goes on");
  assert.notEqual(client.open[0], earlier);
  await client.answer(read);
  assert.equal(client.open.length, 0);
  assert.equal(source.window.start, 0);
  isWhole(source);
});

test("earlier lines and a stream never extend the window at the same time", async () => {
  const { client, source } = await following();
  void source.earlier();
  void source.follow();
  await settled();
  assert.equal(source.isFollowing, true);
  assert.deepEqual([client.open.length, client.running.length], [0, 1]);
  const [stream] = client.running;
  assert.equal(stream.request.cursors[0].offset, String(source.window.end));
  const data = btoa(text(TOTAL / LINE));
  stream.send({ output: { chunks: [{ offset: String(TOTAL), data }] } });
  await settled();
  assert.equal(source.window.end, TOTAL + LINE);
  isWhole(source);
});

test("a pause during the first load, taken back, leaves one stream", async () => {
  const { client, source } = made();
  void source.follow();
  source.pause();
  void source.follow();
  await client.answer(read);
  assert.deepEqual([client.open.length, client.running.length], [0, 1]);
  source.pause();
  assert.equal(client.running.length, 0);
});

test("the latest of several jumps is shown, whichever answer comes last", async () => {
  const { client, source } = await following();
  const places = [30_000_000, 60_000_000, 20_000_000];
  const answers = [];
  for (const place of places) {
    void source.jump(place);
    answers.push(client.open.at(-1));
    assert.equal(source.isLoading, true);
  }
  for (const call of answers.reverse()) {
    call.answer(read(call.request));
    await settled();
    assert.equal(source.isLoading, false);
    assert.ok(source.window.start <= 20_000_000 && 20_000_000 < source.window.end);
  }
});

test("output that was refused is followed once the connection is new", async () => {
  for (const isLoaded of [false, true]) {
    const { client, source } = made();
    void source.follow();
    if (isLoaded) {
      await client.answer(read);
      client.running[0].fail(NO_TOKEN);
      await settled();
    } else {
      await client.fail(NO_TOKEN);
    }
    assert.deepEqual([source.isFollowing, source.failure], [false, NO_TOKEN.message]);
    source.retry();
    assert.equal(source.isFollowing, true);
    if (!isLoaded) await client.answer(read);
    assert.deepEqual([source.failure, client.streams.length], ["", isLoaded ? 2 : 1]);
  }
});

test("a read that fails while the server starts is repeated", async () => {
  const { client, source } = await following();
  void source.jump(0);
  await client.fail(NOT_SERVING);
  assert.deepEqual([source.isLoading, source.failure], [true, NOT_SERVING.message]);
  const call = await until(() => client.open[0]);
  call.answer(read(call.request));
  await settled();
  assert.deepEqual([source.isLoading, source.failure, source.window.start], [false, "", 0]);
});

test("a refused read while paused is possible again once the connection is new", async () => {
  const { client, source } = await following();
  void source.earlier();
  await client.fail(NO_TOKEN);
  assert.deepEqual([source.isLoading, source.isFollowing], [false, false]);
  source.retry();
  assert.deepEqual([source.isFollowing, source.failure], [false, ""]);
});
