import assert from "node:assert/strict";
import { test } from "node:test";

import { create, type MessageInitShape } from "@bufbuild/protobuf";

import {
  TaskEventType,
  WatchEventsRequestSchema,
  WatchEventsResponseSchema,
} from "../../src/gen/heeler/v1/index.js";
import { Cursor } from "../../src/streams/cursor.js";

type Item = NonNullable<MessageInitShape<typeof WatchEventsResponseSchema>["item"]>;

/** Feeds a cursor; returns events as revisions, bookmarks as `b` and revision, tasks as ids. */
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
  value: { revision, epoch: "here" },
});
const initial = (id: string): Item => ({ case: "initial", value: { id } });
const after = (afterRevision: bigint): Cursor =>
  new Cursor(create(WatchEventsRequestSchema, { afterRevision, types: [TaskEventType.ENDED] }));

/** E2 */
test("a break resumes after the last event in the same epoch", () => {
  const cursor = after(4n);
  assert.deepEqual(feed(cursor, bookmark(4n), event(5n), event(8n)), ["b4", "5", "8"]);
  cursor.dropPartialState();
  const request = cursor.request();
  assert.equal(request.afterRevision, 8n);
  assert.equal(request.epoch, "here");
  assert.deepEqual(request.types, [TaskEventType.ENDED], "the filters stay");
});

/** E2 */
test("an event that is sent again after a break is not given again", () => {
  const items = [bookmark(0n), event(1n), event(2n), bookmark(1n), event(2n), event(3n)];
  assert.deepEqual(feed(after(0n), ...items), ["b0", "1", "2", "3"]);
});

/** E3 */
test("an initial state that breaks off is requested again and given once", () => {
  const cursor = new Cursor(create(WatchEventsRequestSchema, { initialState: true }));
  assert.deepEqual(feed(cursor, initial("a"), initial("b")), []);
  cursor.dropPartialState();
  assert.equal(cursor.request().initialState, true);
  assert.deepEqual(feed(cursor, initial("b"), bookmark(7n), event(8n)), ["b", "b7", "8"]);
  cursor.dropPartialState();
  assert.equal(cursor.request().initialState, false);
  assert.equal(cursor.request().afterRevision, 8n);
});
