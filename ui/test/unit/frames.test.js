import assert from "node:assert/strict";
import test from "node:test";
import { FrameReader, framed } from "../../page/connect/frames.js";

/** @param {number} flags @param {unknown} message */
function frame(flags, message) {
  const bytes = framed(message);
  bytes[0] = flags;
  return bytes;
}

const join = (...parts) => Uint8Array.from(parts.flatMap((part) => [...part]));

test("frames are read whatever the size of the pieces", () => {
  const messages = [{ a: 1 }, { text: "grüße ✓" }, {}];
  const bytes = join(
    ...messages.map((message) => frame(0, message)),
    frame(2, { error: { code: "x" } }),
  );
  for (const size of [1, 2, 3, 4, 5, 6, 7, 100]) {
    const reader = new FrameReader();
    const read = [];
    for (let at = 0; at < bytes.length; at += size)
      read.push(...reader.push(bytes.subarray(at, at + size)));
    assert.deepEqual(
      read.map((one) => one.message),
      [...messages, { error: { code: "x" } }],
      `pieces of ${size}`,
    );
    assert.deepEqual(
      read.map((one) => one.isEnd),
      [false, false, false, true],
    );
  }
});

test("a frame without a message is an empty message", () => {
  assert.deepEqual(new FrameReader().push(new Uint8Array([2, 0, 0, 0, 0])), [
    { isEnd: true, message: {} },
  ]);
});

test("a request is one frame with its length", () => {
  const bytes = framed({ initialState: true });
  const json = new TextDecoder().decode(bytes.subarray(5));
  assert.deepEqual([...bytes.subarray(0, 5)], [0, 0, 0, 0, json.length]);
  assert.deepEqual(JSON.parse(json), { initialState: true });
});
