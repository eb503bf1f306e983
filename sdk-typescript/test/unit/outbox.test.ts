import assert from "node:assert/strict";
import { test } from "node:test";

import { create } from "@bufbuild/protobuf";

import { ProgressUpdateSchema, WorkerResultSchema } from "../../src/gen/heeler/v1/index.js";
import { Outbox } from "../../src/work/outbox.js";
import { toUpdates } from "../../src/work/progress.js";

const progress = { case: "progress", value: create(ProgressUpdateSchema) } as const;
const result = { case: "result", value: create(WorkerResultSchema) } as const;

/** The numbers of everything that a new connection sends. */
function sentAgain(outbox: Outbox): bigint[] {
  const sent: bigint[] = [];
  for (let next; (next = outbox.after(sent.at(-1) ?? 0n)) !== undefined;) {
    sent.push(next.sequence);
  }
  return sent;
}

/** P8 */
test("what is not acknowledged is sent again in order", () => {
  const outbox = new Outbox();
  for (const item of [progress, progress, progress, result]) {
    outbox.push(item);
  }
  assert.equal(outbox.acknowledge(2n), false, "the result is not among them");
  assert.deepEqual(sentAgain(outbox), [3n, 4n]);
  assert(outbox.hasResult);
  assert.equal(outbox.acknowledge(4n), true);
  assert.deepEqual([outbox.hasResult, outbox.isEmpty], [false, true]);
  assert.equal(outbox.push(progress), 5n, "numbers are not used again");
});

test("an outbox is bounded", () => {
  const outbox = new Outbox();
  while (outbox.hasRoom) {
    outbox.push(progress);
  }
  assert.equal(sentAgain(outbox).length, 256);
  outbox.acknowledge(1n);
  assert(outbox.hasRoom);
});

/** P1 */
test("a long text is cut at a character before it is sent, and keeps its length", () => {
  const [update] = toUpdates({
    blocks: [{ text: "é".repeat(4096) }, { text: `x${"é".repeat(4096)}` }],
  });
  assert.deepEqual(
    update?.blocks.map(({ text, textBytes }) => [Buffer.byteLength(text), textBytes]),
    [
      [4096, 8192n],
      [4095, 8193n],
    ],
  );
});

test("many blocks are several messages, of which the first has the other changes", () => {
  const blocks = Array.from({ length: 500 }, (_, at) => ({ text: at.toString() }));
  const updates = toUpdates({ blocks, percent: 5 });
  assert.deepEqual(
    updates.map((update) => [update.blocks.length, update.percent]),
    [
      [240, 5],
      [240, undefined],
      [20, undefined],
    ],
  );
  assert.equal(updates[2]?.blocks.at(-1)?.text, "499");
});
