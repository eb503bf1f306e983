import assert from "node:assert/strict";
import { test } from "node:test";

import { OutputStream } from "../../src/index.js";
import { toLines } from "../../src/streams/lines.js";
import type { Chunk } from "../../src/streams/output.js";
import { collect } from "../support/collect.js";

async function* chunks(...pieces: [OutputStream, string | Uint8Array][]): AsyncGenerator<Chunk> {
  let offset = 0n;
  for (const [stream, piece] of pieces) {
    const data = Buffer.from(piece as string);
    const end = offset + BigInt(data.length);
    await Promise.resolve();
    yield { offset, end, stream, readTime: new Date(0), data };
    offset = end;
  }
}

const { STDOUT, STDERR } = OutputStream;

test("each stream is cut into lines separately, also when a chunk ends inside a character", async () => {
  const euro = Buffer.from("€\n");
  const pieces = chunks(
    [STDOUT, "one\ntw"],
    [STDERR, "err"],
    [STDOUT, "o\r\n\n"],
    [STDERR, "or\nrest"],
    [STDOUT, euro.subarray(0, 1)],
    [STDOUT, euro.subarray(1)],
  );
  const lines = await collect(toLines(pieces, {}));
  assert.deepEqual(
    lines.map(({ stream, text, offset }) => [OutputStream[stream], text, Number(offset)]),
    [
      ["STDOUT", "one", 0],
      ["STDOUT", "two", 4],
      ["STDOUT", "", 12],
      ["STDERR", "error", 6],
      ["STDOUT", "€", 20],
      ["STDERR", "rest", 16],
    ],
  );
});

/** O9 */
test("a line beyond the limit is given in pieces", async () => {
  const lines = await collect(toLines(chunks([STDOUT, "abcdefg\nh"]), { maxLineBytes: 3 }));
  assert.deepEqual(
    lines.map(({ text }) => text),
    ["abc", "def", "g", "h"],
  );
  await assert.rejects(collect(toLines(chunks(), { maxLineBytes: 0 })), /maxLineBytes/u);
});
