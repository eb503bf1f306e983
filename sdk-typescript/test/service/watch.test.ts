import assert from "node:assert/strict";
import { test } from "node:test";

import {
  type Bookmark,
  type HeelerClient,
  TaskEventType,
  type WatchItem,
} from "../../src/index.js";
import { collect } from "../support/collect.js";
import { Daemon, until } from "../support/daemon.js";

/** Collects the items of a watch in the background. */
function follow(watch: AsyncIterable<WatchItem>): { items: WatchItem[]; done: Promise<void> } {
  const items: WatchItem[] = [];
  const done = (async () => {
    for await (const item of watch) {
      items.push(item);
    }
  })();
  return { items, done };
}

function revisions(items: WatchItem[]): bigint[] {
  return items.flatMap((item) => (item.kind === "event" ? [item.event.revision] : []));
}

function hasEnded(items: WatchItem[], id: string): true | undefined {
  const found = items.some(
    (item) =>
      item.kind === "event" &&
      item.event.type === TaskEventType.ENDED &&
      item.event.task?.id === id,
  );
  return found ? true : undefined;
}

async function spawnAndWait(client: HeelerClient): Promise<string> {
  const task = await client.spawn({ argv: ["true"] });
  await task.wait();
  return task.id;
}

/** E9 */
test("session activity counts live tasks, and SESSION_IDLE comes at zero", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  const argv = ["sleep", "600"];
  const agent = await client.spawn({ argv, sessionId: "s", kind: "agent" });
  await (await client.spawn({ argv: ["true"], sessionId: "s" })).wait();
  await agent.cancel();
  const counts: [number, number, boolean][] = [];
  for await (const item of client.watch({ after: 0n, filter: { sessionId: "s" } })) {
    if (item.kind !== "event" || item.event.sessionActivity === undefined) {
      continue;
    }
    const { agents, shells } = item.event.sessionActivity;
    counts.push([agents, shells, item.event.task !== undefined]);
    if (item.event.type === TaskEventType.SESSION_IDLE) {
      break;
    }
  }
  assert.deepEqual(counts, [
    [1, 0, true],
    [1, 1, true],
    [1, 0, true],
    [0, 0, true],
    [0, 0, false],
  ]);
});

/** E2, R1 */
test("a watch survives kills of the daemon without a loss and without a repeat", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  const abort = new AbortController();
  const { items, done } = follow(client.watch({ after: 0n, signal: abort.signal }));
  const survivor = await client.spawn({ argv: ["sleep", "600"] });
  let last = "";
  for (let round = 0; round < 3; round += 1) {
    last = await spawnAndWait(client);
    await daemon.kill();
    await daemon.restart();
    last = await spawnAndWait(client);
  }
  await survivor.cancel();
  await until("both ends", () => hasEnded(items, last) && hasEnded(items, survivor.id));
  const received = revisions(items);
  assert.deepEqual(
    received,
    received.map((_, index) => BigInt(index + 1)),
    "every revision once, in order",
  );
  assert.equal(received.length, 3 * 3 * 2 + 4);
  const reason = new Error("enough");
  abort.abort(reason);
  await assert.rejects(done, reason);
});

/** E3 */
test("the initial state comes first, then a bookmark", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  const task = await client.spawn({ argv: ["sleep", "600"] });
  let kept: Bookmark | undefined;
  const kinds: string[] = [];
  for await (const item of client.watch({ initialState: true })) {
    kinds.push(item.kind);
    if (item.kind === "bookmark") {
      kept = item.bookmark;
      break;
    }
  }
  assert.deepEqual(kinds, ["initial", "bookmark"]);
  await task.cancel();
  const types = ["ended"] as const;
  for await (const item of client.watch({ after: kept, types, filter: { taskIds: [task.id] } })) {
    if (item.kind === "event") {
      assert.equal(item.event.type, TaskEventType.ENDED);
      break;
    }
  }
});

/** E8 */
test("bookmarks are sent while there are no events", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  let bookmarks = 0;
  for await (const item of client.watch({ bookmarkIntervalMs: 100 })) {
    assert.equal(item.kind, "bookmark");
    bookmarks += 1;
    if (bookmarks === 3) {
      break;
    }
  }
});

/** E4 */
test("an error that reconnecting cannot remove ends the watch", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  await assert.rejects(collect(client.watch({ after: 1000n })), {
    code: "OUT_OF_RANGE",
    reason: "REVISION_OUT_OF_RANGE",
    metadata: { oldest: "1", newest: "0" },
  });
  const foreign = { revision: 0n, epoch: "elsewhere" };
  await assert.rejects(collect(client.watch({ after: foreign })), { reason: "EPOCH_MISMATCH" });
  await assert.rejects(collect(client.watch({ after: 0n, initialState: true })), {
    reason: "INVALID_FIELD",
  });
});

test("giveUpAfterMs counts from the break, and ends the watch", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  const quiet = follow(client.watch({ giveUpAfterMs: 200 }));
  const clock = follow(client.watch({ bookmarkIntervalMs: 100 }));
  await until("longer than giveUpAfterMs", () => (clock.items.length > 4 ? true : undefined));
  const clockEnds = assert.rejects(clock.done, { kind: "closed" });
  await daemon.kill();
  // Without an attempt to reconnect, the kind would be `disconnected`.
  await assert.rejects(quiet.done, { kind: "notRunning" });
  client.close();
  await clockEnds;
});

/** E7 */
test("leaving a watch closes its stream", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  for (let i = 0; i < 300; i += 1) {
    for await (const item of client.watch()) {
      assert.equal(item.kind, "bookmark");
      break;
    }
  }
});
