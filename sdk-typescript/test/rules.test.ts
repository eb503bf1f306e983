import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import {
  EndReason,
  ExclusiveMode,
  exitCode,
  ForegroundTimeoutAction,
  type HeelerClient,
  HolderGoneAction,
  LingeringPolicy,
  Placement,
  RefusedError,
  SpawnNoticeType,
  StaleAction,
  TaskEventType,
  TaskState,
} from "../src/index.js";
import { collect } from "./collect.js";
import { Daemon } from "./daemon.js";

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

test("every rule of a request is in force for its task", async () => {
  const { task } = await client.spawnResponse({
    argv: ["sleep", "600"],
    placement: "foreground",
    foregroundTimeoutMs: 61_500,
    onForegroundTimeout: "cancel",
    onHolderGone: "keep",
    holderWindowMs: 0,
    lingering: "kill",
    idleTimeoutMs: 3_600_000,
    staleAfterMs: 1_800_000,
    staleAction: "cancel",
    timeoutMs: 7_200_000,
  });
  assert.equal(task?.placement, Placement.FOREGROUND);
  assert.deepEqual([task.foregroundTimeout?.seconds, task.foregroundTimeout?.nanos], [61n, 5e8]);
  assert.equal(task.onForegroundTimeout, ForegroundTimeoutAction.CANCEL);
  assert.equal(task.onHolderGone, HolderGoneAction.KEEP);
  assert.equal(task.holderWindow?.seconds, 0n);
  assert.equal(task.lingering, LingeringPolicy.KILL);
  assert.equal(task.idleTimeout?.seconds, 3600n);
  assert.equal(task.staleAfter?.seconds, 1800n);
  assert.equal(task.staleAction, StaleAction.CANCEL);
  assert.equal(task.timeout?.seconds, 7200n);
});

test("without rules, the defaults are the daemon's", async () => {
  const { task } = await client.spawnResponse({ argv: ["sleep", "600"] });
  assert.equal(task?.placement, Placement.BACKGROUND);
  assert.equal(task.lingering, LingeringPolicy.TRACK);
  assert.equal(task.foregroundTimeout, undefined);
  assert.equal(task.exclusiveMode, ExclusiveMode.UNSPECIFIED);
});

test("a rule that is no such word is refused before it is sent", async () => {
  const rules = {
    placement: "nowhere",
    onForegroundTimeout: "keep",
    onHolderGone: "wait",
    lingering: "adopt",
    staleAction: "kill",
    exclusiveMode: "share",
  };
  for (const [name, word] of Object.entries(rules)) {
    const spawned = client.spawn({ argv: ["true"], [name]: word });
    await assert.rejects(spawned, new RegExp(`${name} must be one of .*, not ${word}`, "u"));
  }
  await assert.rejects(client.spawn({ argv: ["true"], staleAction: "notify" }), {
    reason: "INVALID_FIELD",
  });
});

/** A1 */
test("the answer to a spawn says what was done differently", async () => {
  const { task, notices } = await client.spawnResponse({ shell: "echo hi &" });
  assert.equal(notices[0]?.type, SpawnNoticeType.TRAILING_AMPERSAND);
  assert.notEqual(notices[0].message, "");
  assert.equal(task?.command.case, "shell");
});

/** T4, T5 */
test("silence is told, ends when the task speaks, or ends the task", async () => {
  const go = join(daemon.dir, "speak");
  const task = await client.spawn({
    shell: `while [ ! -e ${go} ]; do sleep 0.01; done; echo here`,
    staleAfterMs: 500,
  });
  const types: TaskEventType[] = [];
  for await (const { type } of task.events()) {
    types.push(type);
    if (type === TaskEventType.STALE) {
      assert.equal((await task.snapshot()).stale, true);
      writeFileSync(go, "");
    }
  }
  const { CREATED, STARTED, STALE, ACTIVE, ENDED } = TaskEventType;
  assert.deepEqual(
    types.filter((type) => type !== ACTIVE),
    [CREATED, STARTED, STALE, ENDED],
  );
  const idle = await client.spawn({ argv: ["sleep", "600"], idleTimeoutMs: 100, graceMs: 0 });
  assert.equal((await idle.wait()).endReason, EndReason.IDLE_DEADLINE);
});

/** X1 */
test("an exclusive key refuses, replaces or queues", async () => {
  const key = { exclusiveKey: "k" };
  const holder = await client.spawn({ argv: ["sleep", "600"], ...key });
  await assert.rejects(client.spawn({ argv: ["true"], ...key }), {
    code: "FAILED_PRECONDITION",
    reason: "EXCLUSIVE_KEY_HELD",
    metadata: { exclusive_key: "k", task_id: holder.id },
  });
  const replaced = await client.spawnResponse({
    argv: ["sleep", "600"],
    ...key,
    exclusiveMode: "replace",
  });
  assert.equal(replaced.task?.state, TaskState.RUNNING);
  assert.equal(replaced.task.exclusiveMode, ExclusiveMode.REPLACE);
  assert.equal((await holder.snapshot()).endReason, EndReason.REPLACED);
  const waiting = await client.spawnResponse({ shell: "exit 8", ...key, exclusiveMode: "queue" });
  assert.equal(waiting.task?.state, TaskState.QUEUED);
  await client.cancelBackgroundTask(replaced.task.id);
  const task = client.task(waiting.task.id);
  assert.equal(exitCode(await task.wait()), 8);
  const types = (await collect(task.events())).map(({ type }) => TaskEventType[type]);
  assert.deepEqual(types, ["CREATED", "ADMITTED", "STARTED", "ENDED"]);
});

/** X1 */
test("a queue is paused, listed and let go on", async () => {
  const queue = await client.updateQueue("q", { slots: 2, paused: true });
  assert.deepEqual([queue.name, queue.slots, queue.paused], ["q", 2, true]);
  const { task } = await client.spawnResponse({ argv: ["true"], queue: "q" });
  assert.equal(task?.state, TaskState.QUEUED);
  assert.equal(task.queue, "q");
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
test("limits of a session and of a label are named", async () => {
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
