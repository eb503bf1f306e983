import assert from "node:assert/strict";
import { test } from "node:test";

import { create, type MessageInitShape } from "@bufbuild/protobuf";

import { Backoff } from "../src/backoff.js";
import { Cursor } from "../src/cursor.js";
import {
  WatchEventsRequestSchema,
  WatchEventsResponseSchema,
} from "../src/gen/heeler/v1/background_tasks_pb.js";
import { TaskEventType } from "../src/gen/heeler/v1/event_pb.js";
import { OutputStream } from "../src/gen/heeler/v1/output_pb.js";
import { toLines } from "../src/lines.js";
import type { Chunk } from "../src/output.js";
import { toDuration } from "../src/time.js";
import { collect } from "./collect.js";

test("delays double up to the longest", () => {
  const backoff = new Backoff(Infinity, () => 0);
  const delays = Array.from({ length: 10 }, () => backoff.afterFailure(0));
  assert.deepEqual(delays.slice(0, 3), [10, 20, 40]);
  assert.equal(delays[9], 1000);
  assert.equal(new Backoff(Infinity, () => 1).afterFailure(0), 5, "jitter takes at most half");
});

test("patience counts delays and attempts, and a call that was served begins anew", () => {
  const backoff = new Backoff(30, () => 0);
  assert.equal(backoff.afterFailure(10), 10);
  assert.equal(backoff.afterFailure(10), undefined);
  assert.equal(backoff.afterFailure(60_000), 10);
  assert.equal(new Backoff(0).afterFailure(0), undefined, "none means one attempt");
});

/** T3 */
test("very long spans become the longest, and what is no number is refused by name", () => {
  assert.equal(toDuration("x", Infinity).seconds, 315_576_000_000n);
  assert.equal(toDuration("x", 1500.5).nanos, 500_500_000);
  assert.equal(toDuration("x", -1500).seconds, -1n, "the daemon refuses it");
  assert.throws(() => toDuration("graceMs", NaN), /graceMs must be a number/u);
});

type Item = NonNullable<MessageInitShape<typeof WatchEventsResponseSchema>["item"]>;

/** Feeds a cursor; gives events as revisions, bookmarks as `b` and revision, tasks as their ids. */
function feed(cursor: Cursor, ...items: Item[]): string[] {
  return items
    .flatMap((item) => cursor.take(create(WatchEventsResponseSchema, { item })))
    .map((item) => {
      switch (item.kind) {
        case "initial":
          return item.task.id;
        case "event":
          return item.event.revision.toString();
        case "bookmark":
          return `b${item.bookmark.revision.toString()}`;
      }
    });
}

const event = (revision: bigint): Item => ({ case: "event", value: { revision } });
const bookmark = (revision: bigint): Item => ({
  case: "bookmark",
  value: { revision, stateId: "here" },
});
const initial = (id: string): Item => ({ case: "initial", value: { id } });
const after = (afterRevision: bigint): Cursor =>
  new Cursor(create(WatchEventsRequestSchema, { afterRevision, types: [TaskEventType.ENDED] }));

/** E2 */
test("a break resumes after the last event in the same state", () => {
  const cursor = after(4n);
  assert.deepEqual(feed(cursor, bookmark(4n), event(5n), event(8n)), ["b4", "5", "8"]);
  cursor.broke();
  const request = cursor.request();
  assert.equal(request.afterRevision, 8n);
  assert.equal(request.stateId, "here");
  assert.deepEqual(request.types, [TaskEventType.ENDED], "the filters stay");
});

/** E2 */
test("what comes again after a break is not given again", () => {
  const items = [bookmark(0n), event(1n), event(2n), bookmark(1n), event(2n), event(3n)];
  assert.deepEqual(feed(after(0n), ...items), ["b0", "1", "2", "3"]);
});

/** E3 */
test("an initial state that breaks off is asked for anew and given once", () => {
  const cursor = new Cursor(create(WatchEventsRequestSchema, { initialState: true }));
  assert.deepEqual(feed(cursor, initial("a"), initial("b")), []);
  cursor.broke();
  assert.equal(cursor.request().initialState, true);
  assert.deepEqual(feed(cursor, initial("b"), bookmark(7n), event(8n)), ["b", "b7", "8"]);
  cursor.broke();
  assert.equal(cursor.request().initialState, false);
  assert.equal(cursor.request().afterRevision, 8n);
});

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

test("lines are cut in each stream for itself, characters across chunks included", async () => {
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
test("a line beyond the limit comes in pieces", async () => {
  const lines = await collect(toLines(chunks([STDOUT, "abcdefg\nh"]), { maxLineBytes: 3 }));
  assert.deepEqual(
    lines.map(({ text }) => text),
    ["abc", "def", "g", "h"],
  );
  await assert.rejects(collect(toLines(chunks(), { maxLineBytes: 0 })), /maxLineBytes/u);
});
