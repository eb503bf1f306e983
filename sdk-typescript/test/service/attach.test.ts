import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import * as v1 from "../../src/gen/heeler/v1/index.js";
import {
  type AttachEnd,
  AttachEndReason,
  type AttachItem,
  DetachCause,
  DetachOutcome,
  EndReason,
  Placement,
  TaskEventType,
  TaskState,
} from "../../src/index.js";
import { collect } from "../support/collect.js";
import { Daemon, until } from "../support/daemon.js";

/** A reattach window that does not end during a test. */
const WINDOW_MS = 60_000;

/** Reads an attachment in the background. */
function follow(attachment: AsyncIterable<AttachItem>): {
  kinds: string[];
  text: () => string;
  ended: Promise<AttachEnd>;
} {
  const kinds: string[] = [];
  let text = "";
  const ended = (async () => {
    for await (const item of attachment) {
      if (item.kind === "output") {
        text += Buffer.from(item.chunk.data).toString();
      }
      if (kinds.at(-1) !== item.kind) {
        kinds.push(item.kind);
      }
      if (item.kind === "ended") {
        return item;
      }
    }
    throw new Error("the attachment has no end");
  })();
  return { kinds, text: () => text, ended };
}

/** A script that writes one line, and another once the file exists. */
function untilGo(go: string): string {
  return `echo one; while [ ! -e ${go} ]; do sleep 0.01; done; echo two; exit 4`;
}

/** F11 */
test("an attachment gives all output and then the end", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  const go = join(daemon.dir, "go");
  const task = await client.spawn({ shell: untilGo(go), foreground: {} });
  const attached = follow(task.attach());
  await until("the first line", () => (attached.text() === "one\n" ? true : undefined));
  assert.equal(await task.waitFor(0, { until: "outOfForeground" }), undefined);
  writeFileSync(go, "");
  const { reason, task: finished } = await attached.ended;
  assert.equal(reason, AttachEndReason.FINISHED);
  assert.equal(finished.state, TaskState.FAILED);
  assert.equal(finished.exitCode, 4);
  assert.equal(attached.text(), "one\ntwo\n");
  assert.deepEqual(attached.kinds, ["attached", "output", "ended"]);
});

/** F6, R1 */
test("an attachment resumes at the next byte when the daemon is killed", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  const go = join(daemon.dir, "go");
  const task = await client.spawn({
    shell: untilGo(go),
    foreground: { reattachWindowMs: WINDOW_MS },
  });
  const attached = follow(task.attach());
  await until("the first line", () => (attached.text() === "one\n" ? true : undefined));
  await daemon.kill();
  await daemon.restart();
  assert.equal((await task.get()).placement, Placement.FOREGROUND);
  await daemon.kill();
  await daemon.restart();
  writeFileSync(go, "");
  assert.equal((await attached.ended).reason, AttachEndReason.FINISHED);
  assert.equal(attached.text(), "one\ntwo\n", "every byte once");
  assert.deepEqual(attached.kinds, ["attached", "output", "ended"]);
});

/** F1, F7 */
test("a detach ends the attachment, and the task continues", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  const options = {
    shell: "echo up; exec sleep 600",
    sessionId: "s",
    foreground: { reattachWindowMs: WINDOW_MS },
  };
  const task = await client.spawn(options);
  const attached = follow(task.attach());
  await until("the first line", () => (attached.text() === "up\n" ? true : undefined));
  const before = await task.get();
  const result = await task.detach({ timeoutMs: 3_600_000, reason: "a key", actor: "me" });
  assert.equal(result.outcome, DetachOutcome.DETACHED);
  const { reason, task: left } = await attached.ended;
  assert.equal(reason, AttachEndReason.DETACHED);
  assert.equal(left.detachment?.cause, DetachCause.REQUESTED);
  assert.equal(left.detachment.reason, "a key");
  assert.equal(left.detachment.actor?.name, "me");
  assert.equal(left.detachment.timeout?.seconds, 3600n);
  assert.equal(left.leader?.pid, before.leader?.pid);
  assert.equal((await task.wait({ until: "outOfForeground" })).state, TaskState.RUNNING);

  assert.equal((await task.detach()).outcome, DetachOutcome.ALREADY_BACKGROUND);
  assert.deepEqual(await client.detach({ sessionId: "s" }), []);
  const other = await client.spawn(options);
  const results = await client.detach({ sessionId: "s" });
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
test("a task that was detached during a break ends the attachment", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  using other = await daemon.connect();
  const go = join(daemon.dir, "go");
  const task = await client.spawn({
    shell: `echo one; while [ ! -e ${go} ]; do sleep 0.01; done; echo two; exec sleep 600`,
    foreground: { reattachWindowMs: WINDOW_MS },
  });
  // It stays attached, and reads only on demand.
  const attachment = task.attach();
  assert.equal((await attachment.next()).value?.kind, "attached");
  assert.equal((await attachment.next()).value?.kind, "output");
  await daemon.kill();
  await daemon.restart();
  await other.detach({ taskIds: [task.id] });
  writeFileSync(go, "");
  await until("the second line", async () => {
    const { endOffset } = await other.readOutput(task.id);
    return endOffset === 8n ? true : undefined;
  });
  const attached = follow(attachment);
  const { reason, task: left } = await attached.ended;
  assert.equal(reason, AttachEndReason.DETACHED);
  assert.equal(left.detachment?.cause, DetachCause.REQUESTED);
  assert.equal(attached.text(), "two\n", "output of the break is not missing");
});

/** F6 */
test("a background task is followed, or ends the attachment with foregroundOnly", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  const go = join(daemon.dir, "go");
  const task = await client.spawn({ shell: untilGo(go) });
  const attached = follow(task.attach());
  await until("the first line", () => (attached.text() === "one\n" ? true : undefined));
  const brief = follow(task.attach({ foregroundOnly: true }));
  assert.equal((await brief.ended).reason, AttachEndReason.DETACHED);
  assert.equal(brief.text(), "one\n");
  writeFileSync(go, "");
  assert.equal((await attached.ended).reason, AttachEndReason.FINISHED);
  assert.equal(attached.text(), "one\ntwo\n");
  const late = follow(task.attach({ offset: 4n, foregroundOnly: true }));
  assert.equal((await late.ended).reason, AttachEndReason.FINISHED);
  assert.equal(late.text(), "two\n");
  const tail = follow(task.attach({ tailBytes: 2 }));
  await tail.ended;
  assert.equal(tail.text(), "o\n");
});

test("an attachment gives text on request, and still counts bytes", async () => {
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
test("an attachment that is left is a disconnect, and onDisconnect applies", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  const shell = "echo up; exec sleep 600";
  const cancelled = await client.spawn({ shell, foreground: { reattachWindowMs: 500 } });
  for await (const item of cancelled.attach()) {
    if (item.kind === "output") {
      break;
    }
  }
  assert.equal((await cancelled.wait()).endReason, EndReason.CLIENT_DISCONNECTED);

  const foreground = { reattachWindowMs: 500, onDisconnect: "detach" } as const;
  const detached = await client.spawn({ shell, foreground });
  const abort = new AbortController();
  const attached = follow(detached.attach({ signal: abort.signal }));
  const aborted = assert.rejects(attached.ended, /enough/u);
  await until("the first line", () => (attached.text() === "up\n" ? true : undefined));
  abort.abort(new Error("enough"));
  await aborted;
  const left = await detached.wait({ until: "outOfForeground" });
  assert.equal(left.detachment?.cause, DetachCause.CLIENT_DISCONNECTED);
  assert.equal(left.state, TaskState.RUNNING);
});

/** F11 */
test("the exit of the leader ends the attachment while orphans live", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  const task = await client.spawn({
    shell: "sleep 600 & exit 3",
    foreground: {},
    orphanPolicy: "track",
  });
  const { reason, task: left } = await follow(task.attach()).ended;
  assert.equal(reason, AttachEndReason.LEADER_EXITED);
  assert.equal(left.exitCode, 3);
  assert.equal(left.spec?.orphanPolicy, v1.OrphanPolicy.TRACK);
  await task.cancel();
});

/** F6 */
test("an attachment that goes out of scope is a disconnect, also while an item is awaited", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const foreground = { reattachWindowMs: 500 };
  const task = await client.spawn({ argv: ["sleep", "600"], foreground });
  let pending: Promise<void>;
  {
    await using attachment = task.attach();
    assert.equal((await attachment.next()).value?.kind, "attached");
    pending = assert.rejects(attachment.next(), { name: "AbortError" });
  }
  await pending;
  assert.equal((await task.wait()).endReason, EndReason.CLIENT_DISCONNECTED);
});

test("an error that reconnecting cannot remove ends an attachment", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  await assert.rejects(collect(client.attach("shell-aaaaaaaaaa")), { reason: "TASK_NOT_FOUND" });
  await assert.rejects(collect(client.attach("nonsense")), { kind: "refused" });
  const both = client.attach("shell-aaaaaaaaaa", { offset: 1n, tailBytes: 1 });
  await assert.rejects(collect(both), /either offset or tailBytes/u);
  const task = await client.spawn({ argv: ["sleep", "600"], foreground: {} });
  const attached = task.attach({ giveUpAfterMs: 50 });
  await attached.next();
  await daemon.kill();
  await assert.rejects(collect(attached), { kind: "notRunning" });
});
