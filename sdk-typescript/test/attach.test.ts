import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import {
  type AttachItem,
  DetachCause,
  DetachOutcome,
  EndReason,
  exitCode,
  LingeringPolicy,
  Placement,
  type Release,
  ReleaseReason,
  TaskEventType,
  TaskState,
} from "../src/index.js";
import { collect } from "./collect.js";
import { Daemon, until } from "./daemon.js";

/** A window that a slow machine keeps. */
const WINDOW_MS = 60_000;

/** An attachment that is followed in the background. */
function follow(attachment: AsyncIterable<AttachItem>): {
  kinds: string[];
  text: () => string;
  released: Promise<Release>;
} {
  const kinds: string[] = [];
  let text = "";
  const released = (async () => {
    for await (const item of attachment) {
      if (item.kind === "output") {
        text += Buffer.from(item.chunk.data).toString();
      }
      if (kinds.at(-1) !== item.kind) {
        kinds.push(item.kind);
      }
      if (item.kind === "released") {
        return item;
      }
    }
    throw new Error("the attachment ended without a release");
  })();
  return { kinds, text: () => text, released };
}

/** A script that says one thing, and another once there is the file. */
function untilGo(go: string): string {
  return `echo one; while [ ! -e ${go} ]; do sleep 0.01; done; echo two; exit 4`;
}

/** F11 */
test("a holder gets all output and then the end", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  const go = join(daemon.dir, "go");
  const task = await client.spawn({ shell: untilGo(go), placement: "foreground" });
  const held = follow(task.attach());
  await until("the first line", () => (held.text() === "one\n" ? true : undefined));
  assert.equal(await task.waitFor(0, { until: "released" }), undefined);
  writeFileSync(go, "");
  const { reason, task: ended } = await held.released;
  assert.equal(reason, ReleaseReason.FINISHED);
  assert.equal(ended.state, TaskState.FAILED);
  assert.equal(exitCode(ended), 4);
  assert.equal(held.text(), "one\ntwo\n");
  assert.deepEqual(held.kinds, ["attached", "output", "released"]);
});

/** F6, R1 */
test("a hold goes on at the byte where it broke when the daemon is killed", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  const go = join(daemon.dir, "go");
  const task = await client.spawn({
    shell: untilGo(go),
    placement: "foreground",
    holderWindowMs: WINDOW_MS,
  });
  const held = follow(task.attach());
  await until("the first line", () => (held.text() === "one\n" ? true : undefined));
  await daemon.kill();
  await daemon.restart();
  assert.equal((await task.snapshot()).placement, Placement.FOREGROUND);
  await daemon.kill();
  await daemon.restart();
  writeFileSync(go, "");
  assert.equal((await held.released).reason, ReleaseReason.FINISHED);
  assert.equal(held.text(), "one\ntwo\n", "every byte once");
  assert.deepEqual(held.kinds, ["attached", "output", "released"]);
});

/** F1, F7 */
test("a detach releases the holder, and the task goes on", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  const options = { shell: "echo up; exec sleep 600", placement: "foreground" } as const;
  const task = await client.spawn({ ...options, sessionId: "s", holderWindowMs: WINDOW_MS });
  const held = follow(task.attach());
  await until("the first line", () => (held.text() === "up\n" ? true : undefined));
  const before = await task.snapshot();
  const result = await task.detach({ timeoutMs: 3_600_000, reason: "a key", actor: "me" });
  assert.equal(result.outcome, DetachOutcome.DETACHED);
  const { reason, task: released } = await held.released;
  assert.equal(reason, ReleaseReason.DETACHED);
  assert.equal(released.detached?.cause, DetachCause.REQUESTED);
  assert.equal(released.detached.reason, "a key");
  assert.equal(released.detached.actor?.name, "me");
  assert.equal(released.timeout?.seconds, 3600n);
  assert.equal(released.leader?.pid, before.leader?.pid);
  assert.equal((await task.wait({ until: "released" })).state, TaskState.RUNNING);

  assert.equal((await task.detach()).outcome, DetachOutcome.ALREADY_BACKGROUND);
  assert.deepEqual((await client.detach({ sessionId: "s" })).results, []);
  const other = await client.spawn({ ...options, sessionId: "s" });
  const { results } = await client.detach({ sessionId: "s" });
  assert.deepEqual(
    results.map((one) => [one.task?.id, one.outcome]),
    [[other.id, DetachOutcome.DETACHED]],
  );
  await other.cancel();
  assert.equal((await other.detach()).outcome, DetachOutcome.ALREADY_FINISHED);
  const types = (await collect(other.events())).map(({ type }) => type);
  assert.equal(types.filter((type) => type === TaskEventType.DETACHED).length, 1);
});

/** F6 */
test("a task that was detached while the stream was broken releases its holder", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  using other = await daemon.connect();
  const go = join(daemon.dir, "go");
  const task = await client.spawn({
    shell: `echo one; while [ ! -e ${go} ]; do sleep 0.01; done; echo two; exec sleep 600`,
    placement: "foreground",
    holderWindowMs: WINDOW_MS,
  });
  // It holds on, and reads on only when it is told to.
  const attachment = task.attach();
  assert.equal((await attachment.next()).value?.kind, "attached");
  assert.equal((await attachment.next()).value?.kind, "output");
  await daemon.kill();
  await daemon.restart();
  await other.detach({ taskId: task.id });
  writeFileSync(go, "");
  await until("the second line", async () => {
    const { endOffset } = await other.readOutput(task.id);
    return endOffset === 8n ? true : undefined;
  });
  const held = follow(attachment);
  const { reason, task: released } = await held.released;
  assert.equal(reason, ReleaseReason.DETACHED);
  assert.equal(released.detached?.cause, DetachCause.REQUESTED);
  assert.equal(held.text(), "two\n", "what was written meanwhile is not missing");
});

/** F6 */
test("a task in the background is followed, or releases at once whoever wants to be held", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  const go = join(daemon.dir, "go");
  const task = await client.spawn({ shell: untilGo(go) });
  const held = follow(task.attach());
  await until("the first line", () => (held.text() === "one\n" ? true : undefined));
  const turnedAway = follow(task.attach({ foregroundOnly: true }));
  assert.equal((await turnedAway.released).reason, ReleaseReason.DETACHED);
  assert.equal(turnedAway.text(), "one\n");
  writeFileSync(go, "");
  assert.equal((await held.released).reason, ReleaseReason.FINISHED);
  assert.equal(held.text(), "one\ntwo\n");
  const late = follow(task.attach({ offset: 4n, foregroundOnly: true }));
  assert.equal((await late.released).reason, ReleaseReason.FINISHED);
  assert.equal(late.text(), "two\n");
  const tail = follow(task.attach({ tailBytes: 2 }));
  await tail.released;
  assert.equal(tail.text(), "o\n");
});

test("an attachment gives text if so asked, and still counts bytes", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  const task = await client.spawn({ shell: "printf '\\377ab'" });
  await task.wait();
  const items = await collect(task.attach({ view: "text" }));
  const [output] = items.flatMap((item) => (item.kind === "output" ? [item.chunk] : []));
  assert.equal(Buffer.from(output?.data ?? []).toString(), "\uFFFDab");
  assert.equal(output?.end, 3n);
  const word = "html" as "text";
  await assert.rejects(collect(task.attach({ view: word })), /view must be one of raw, text/u);
});

/** F6 */
test("a holder that lets go is gone, and the task's rule applies", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  const options = { shell: "echo up; exec sleep 600", placement: "foreground" } as const;
  const cancelled = await client.spawn({ ...options, holderWindowMs: 500 });
  for await (const item of cancelled.attach()) {
    if (item.kind === "output") {
      break;
    }
  }
  assert.equal((await cancelled.wait()).endReason, EndReason.OWNER_GONE);

  const detached = await client.spawn({ ...options, holderWindowMs: 500, onHolderGone: "detach" });
  const abort = new AbortController();
  const held = follow(detached.attach({ signal: abort.signal }));
  const left = assert.rejects(held.released, /enough/u);
  await until("the first line", () => (held.text() === "up\n" ? true : undefined));
  abort.abort(new Error("enough"));
  await left;
  const released = await detached.wait({ until: "released" });
  assert.equal(released.detached?.cause, DetachCause.HOLDER_GONE);
  assert.equal(released.state, TaskState.RUNNING);
});

/** F11 */
test("a leader that exits releases its holder while children live", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  const task = await client.spawn({
    shell: "sleep 600 & exit 3",
    placement: "foreground",
    lingering: "track",
  });
  const { reason, task: released } = await follow(task.attach()).released;
  assert.equal(reason, ReleaseReason.LEADER_EXITED);
  assert.equal(exitCode(released), 3);
  assert.equal(released.lingering, LingeringPolicy.TRACK);
  await task.cancel();
});

test("what reconnecting cannot cure ends an attachment", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  await assert.rejects(collect(client.attach("shell-aaaaaaaaaa")), { reason: "TASK_NOT_FOUND" });
  await assert.rejects(collect(client.attach("nonsense")), { kind: "refused" });
  const both = client.attach("shell-aaaaaaaaaa", { offset: 1n, tailBytes: 1 });
  await assert.rejects(collect(both), /either offset or tailBytes/u);
  const task = await client.spawn({ argv: ["sleep", "600"], placement: "foreground" });
  const held = task.attach({ giveUpAfterMs: 50 });
  await held.next();
  await daemon.kill();
  await assert.rejects(collect(held), { kind: "notRunning" });
});
