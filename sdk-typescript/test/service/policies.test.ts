import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import * as v1 from "../../src/gen/heeler/v1/index.js";
import {
  EndReason,
  type HeelerClient,
  Placement,
  RefusedError,
  SpawnNoticeType,
  TaskEventType,
  TaskState,
} from "../../src/index.js";
import { collect } from "../support/collect.js";
import { Daemon } from "../support/daemon.js";

let daemon: Daemon;
let client: HeelerClient;

before(async () => {
  daemon = await Daemon.start();
  client = await daemon.connect();
});

after(async () => {
  client.close();
  await daemon[Symbol.asyncDispose]();
});

test("every policy of a request is in force for its task", async () => {
  const { task } = await client.spawnResponse({
    argv: ["sleep", "600"],
    foreground: {
      timeoutMs: 61_500,
      onTimeout: "cancel",
      onDisconnect: "keep",
      reattachWindowMs: 0,
    },
    orphanPolicy: "kill",
    output: { maxBytes: 1 << 20, headBytes: 7n, onLimit: "truncate" },
    idleTimeoutMs: 3_600_000,
    silence: { staleAfterMs: 1_800_000, onStale: "cancel" },
    timeoutMs: 7_200_000,
  });
  assert.equal(task?.placement, Placement.FOREGROUND);
  const { foreground, silence, ...spec } = task.spec ?? assert.fail();
  assert.deepEqual([foreground?.timeout?.seconds, foreground?.timeout?.nanos], [61n, 5e8]);
  assert.equal(foreground?.onTimeout, v1.ForegroundTimeoutAction.CANCEL);
  assert.equal(foreground.onDisconnect, v1.DisconnectAction.KEEP);
  assert.equal(foreground.reattachWindow?.seconds, 0n);
  assert.equal(spec.orphanPolicy, v1.OrphanPolicy.KILL);
  assert.deepEqual([spec.output?.maxBytes, spec.output?.headBytes], [1n << 20n, 7n]);
  assert.equal(spec.output?.onLimit, v1.OutputLimitAction.TRUNCATE);
  assert.equal(spec.idleTimeout?.seconds, 3600n);
  assert.equal(silence?.staleAfter?.seconds, 1800n);
  assert.equal(silence.onStale, v1.StaleAction.CANCEL);
  assert.equal(spec.timeout?.seconds, 7200n);
});

test("without policies, the daemon's defaults apply", async () => {
  const { task } = await client.spawnResponse({ argv: ["sleep", "600"] });
  assert.equal(task?.placement, Placement.BACKGROUND);
  assert.equal(task.spec?.orphanPolicy, v1.OrphanPolicy.TRACK);
  assert.equal(task.spec.foreground, undefined);
  assert.equal(task.spec.exclusive, undefined);
});

test("an unknown word of a policy is refused before it is sent", async () => {
  const policies: [path: string, word: string, options: object][] = [
    ["kind", "batch", { kind: "batch" }],
    ["foreground.onTimeout", "keep", { foreground: { onTimeout: "keep" } }],
    ["foreground.onDisconnect", "wait", { foreground: { onDisconnect: "wait" } }],
    ["silence.onStale", "kill", { silence: { staleAfterMs: 1, onStale: "kill" } }],
    ["exclusive.mode", "share", { exclusive: { key: "k", mode: "share" } }],
    ["orphanPolicy", "adopt", { orphanPolicy: "adopt" }],
  ];
  for (const [path, word, options] of policies) {
    const spawned = client.spawn({ argv: ["true"], ...options });
    await assert.rejects(
      spawned,
      new RegExp(`^TypeError: ${path} must be one of .*, not ${word}`, "u"),
    );
  }
  const silence = {} as { staleAfterMs: number };
  await assert.rejects(client.spawn({ argv: ["true"], silence }), { reason: "INVALID_FIELD" });
});

/** A1 */
test("the answer to a spawn has notices of differences", async () => {
  const { task, notices } = await client.spawnResponse({ shell: "echo hi &" });
  assert.equal(notices[0]?.type, SpawnNoticeType.TRAILING_AMPERSAND);
  assert.notEqual(notices[0].message, "");
  assert.equal(task?.spec?.command.case, "shell");
});

/** T4, T5 */
test("a silent task is stale until it writes output, or is stopped", async () => {
  const go = join(daemon.dir, "write");
  const task = await client.spawn({
    shell: `while [ ! -e ${go} ]; do sleep 0.01; done; echo here`,
    silence: { staleAfterMs: 500 },
  });
  const types: TaskEventType[] = [];
  for await (const { type } of task.events()) {
    types.push(type);
    if (type === TaskEventType.STALE) {
      assert.equal((await task.get()).stale, true);
      writeFileSync(go, "");
    }
  }
  const { CREATED, STARTED, STALE, ACTIVE, ENDED } = TaskEventType;
  assert.deepEqual(
    types.filter((type) => type !== ACTIVE),
    [CREATED, STARTED, STALE, ENDED],
  );
  const stop = { graceMs: 0 };
  const idle = await client.spawn({ argv: ["sleep", "600"], idleTimeoutMs: 100, stop });
  assert.equal((await idle.wait()).endReason, EndReason.IDLE_TIMEOUT);
});

/** X1 */
test("an exclusive key refuses, replaces or queues", async () => {
  const key = "k";
  const holder = await client.spawn({ argv: ["sleep", "600"], exclusive: { key } });
  await assert.rejects(client.spawn({ argv: ["true"], exclusive: { key } }), {
    code: "FAILED_PRECONDITION",
    reason: "EXCLUSIVE_KEY_HELD",
    metadata: { exclusive_key: "k", task_id: holder.id },
  });
  const replaced = await client.spawnResponse({
    argv: ["sleep", "600"],
    exclusive: { key, mode: "replace" },
  });
  assert.equal(replaced.task?.state, TaskState.RUNNING);
  assert.equal(replaced.task.spec?.exclusive?.mode, v1.ExclusiveMode.REPLACE);
  assert.equal((await holder.get()).endReason, EndReason.REPLACED);
  const waiting = await client.spawnResponse({
    shell: "exit 8",
    exclusive: { key, mode: "queue" },
  });
  assert.equal(waiting.task?.state, TaskState.QUEUED);
  await client.cancelBackgroundTask(replaced.task.id);
  const task = client.task(waiting.task.id);
  assert.equal((await task.wait()).exitCode, 8);
  const types = (await collect(task.events())).map(({ type }) => TaskEventType[type]);
  assert.deepEqual(types, ["CREATED", "ADMITTED", "STARTED", "ENDED"]);
});

/** X1 */
test("a queue is paused, listed and resumed", async () => {
  const queue = await client.updateQueue("q", { slots: 2, paused: true });
  assert.deepEqual([queue.name, queue.slots, queue.paused], ["q", 2, true]);
  const { task } = await client.spawnResponse({ argv: ["true"], queue: "q" });
  assert.equal(task?.state, TaskState.QUEUED);
  assert.equal(task.spec?.queue, "q");
  const queues = await client.listQueues();
  assert.deepEqual(
    queues.map(({ name, slots, paused, running, waiting }) => ({
      name,
      slots,
      paused,
      running,
      waiting,
    })),
    [{ name: "q", slots: 2, paused: true, running: 0, waiting: 1 }],
  );
  const changed = await client.updateQueue("q", { paused: false });
  assert.deepEqual([changed.slots, changed.paused], [2, false]);
  assert.equal((await client.task(task.id).wait()).state, TaskState.COMPLETED);
  await assert.rejects(client.updateQueue("q", { slots: 0 }), { reason: "INVALID_FIELD" });
});

/** X3 */
test("a refusal names the limit of a session or of a label", async () => {
  await using small = await Daemon.start("--max-per-session", "1", "--max-per-label", "team=1");
  using limited = await small.connect();
  const argv = ["sleep", "600"];
  await limited.spawn({ argv, sessionId: "s", labels: { team: "red" } });
  await assert.rejects(limited.spawn({ argv, sessionId: "s" }), (error) => {
    assert(error instanceof RefusedError && error.is("SESSION_LIMIT_REACHED"));
    assert.equal(error.code, "RESOURCE_EXHAUSTED");
    assert.deepEqual(error.metadata, { session_id: "s", running: "1", max: "1" });
    return true;
  });
  await assert.rejects(limited.spawn({ argv, labels: { team: "red" } }), {
    reason: "LABEL_LIMIT_REACHED",
    metadata: { label: "team", value: "red", running: "1", max: "1" },
  });
});
