import assert from "node:assert/strict";
import { test } from "node:test";

import { create, type MessageInitShape } from "@bufbuild/protobuf";

import {
  FollowOutputRequestSchema,
  FollowOutputResponseSchema,
  FollowUntil,
} from "../../src/gen/heeler/v1/index.js";
import { FollowCursor } from "../../src/streams/follow-cursor.js";

type Message = MessageInitShape<typeof FollowOutputResponseSchema>;

/** Feeds a cursor; returns tasks as ids, and the rest as the kind, the id and the text. */
function feed(cursor: FollowCursor, ...messages: Message[]): string[] {
  return messages
    .flatMap((message) => cursor.take(create(FollowOutputResponseSchema, message)))
    .map((item) => {
      switch (item.kind) {
        case "task":
          return item.task.id;
        case "output":
          return `${item.taskId}: ${Buffer.from(item.chunk.data).toString()}`;
        case "ended":
          return `ended ${item.task.id}`;
        case "gone":
          return `gone ${item.taskId}`;
      }
    });
}

const begins = (id: string, revision = 4n): Message => ({
  item: { case: "task", value: { id, startTime: { seconds: 1n } } },
  revision,
});
const ends = (id: string, revision: bigint): Message => ({
  item: { case: "ended", value: { id } },
  revision,
});
const output = (taskId: string, text: string, nextOffset: bigint): Message => ({
  item: {
    case: "output",
    value: { taskId, chunks: [{ content: { case: "text", value: text } }], nextOffset },
  },
  revision: 4n,
});
const bookmark: Message = { item: { case: "bookmark", value: { epoch: "here" } }, revision: 4n };

function places(cursor: FollowCursor): [string, bigint | undefined][] {
  return cursor.request().cursors.map(({ taskId, offset }) => [taskId, offset]);
}

/** O15 */
test("a task that has not started is resumed at its first byte", () => {
  const start = { case: "tailLines", value: 1n } as const;
  const cursor = new FollowCursor(create(FollowOutputRequestSchema, { start }));
  feed(cursor, bookmark, { item: { case: "task", value: { id: "a" } }, revision: 5n });
  assert.deepEqual(places(cursor), [["a", 0n]]);
});

/** O15 */
test("a break resumes each task that has not ended, at its offset", () => {
  const cursor = new FollowCursor(
    create(FollowOutputRequestSchema, { includeFinished: true, until: FollowUntil.FINISHED }),
  );
  const items = feed(
    cursor,
    begins("a"),
    begins("b"),
    bookmark,
    output("a", "x", 7n),
    begins("c", 6n),
    ends("b", 8n),
  );
  assert.deepEqual(items, ["a", "b", "a: x", "c", "ended b"]);
  cursor.dropPartialState();
  assert.deepEqual(places(cursor), [
    ["a", 7n],
    ["c", undefined],
  ]);
  const { afterRevision, epoch, includeFinished, until } = cursor.request();
  assert.deepEqual([afterRevision, epoch, includeFinished], [8n, "here", false]);
  assert.equal(until, FollowUntil.FINISHED, "the other options stay");
  assert.deepEqual(feed(cursor, begins("a"), begins("c"), bookmark, output("a", "y", 8n)), [
    "a: y",
  ]);
});

/** O15 */
test("a beginning that breaks off is requested again and given once", () => {
  const first = create(FollowOutputRequestSchema, { cursors: [{ taskId: "b", offset: 3n }] });
  const cursor = new FollowCursor(first);
  assert.deepEqual(feed(cursor, begins("a"), begins("b")), []);
  cursor.dropPartialState();
  assert.equal(cursor.request(), first);
  assert.deepEqual(feed(cursor, begins("b"), bookmark), ["b"], "a has ended in between");
  assert.deepEqual(places(cursor), [["b", 3n]], "without output, the place is the given one");
});

/** O15 */
test("a task that is gone is not resumed, and the last message ends the stream", () => {
  const cursor = new FollowCursor(create(FollowOutputRequestSchema, {}));
  const gone: Message = { item: { case: "gone", value: { taskId: "a" } }, revision: 5n };
  assert.deepEqual(feed(cursor, begins("a"), bookmark, gone), ["a", "gone a"]);
  assert.deepEqual(places(cursor), []);
  assert.equal(cursor.isFinished, false);
  feed(cursor, { item: { case: "finished", value: {} }, revision: 5n });
  assert.equal(cursor.isFinished, true);
});
