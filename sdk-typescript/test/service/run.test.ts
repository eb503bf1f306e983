import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import {
  AttachEndReason,
  DetachCause,
  DisconnectedError,
  EndReason,
  type HeelerClient,
  NotRunningError,
  Placement,
  SpawnNoticeType,
  type Task,
  type BackgroundTask,
  TaskState,
} from "../../src/index.js";
import { collect } from "../support/collect.js";
import { Daemon, until } from "../support/daemon.js";

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

/** Includes finished tasks, also those that finished in the foreground. */
const ALL = { includeFinished: true, includeFinishedForeground: true };

/** The only task of a session, once it is finished. */
async function ended(sessionId: string): Promise<BackgroundTask> {
  await client.wait({ sessionId });
  const [task] = await collect(client.list({ filter: { sessionId }, ...ALL }));
  assert(task);
  return task;
}

/** F11 */
test("run returns the output and the exit code", async () => {
  const result = await client.run({ shell: "echo out; echo err >&2; exit 4" });
  assert.equal(result.reason, AttachEndReason.FINISHED);
  assert.equal(result.exitCode, 4);
  assert.equal(result.task.exitCode, 4);
  assert.equal(result.stdout, "out\n");
  assert.equal(result.stderr, "err\n");
  assert.equal(result.isTruncated, false);
  assert.deepEqual(result.notices, []);
});

test("run calls back with the handle and with each piece, one at a time", async () => {
  const go = join(daemon.dir, "go");
  const pieces: string[] = [];
  let started: Task | undefined;
  let isBusy = false;
  const result = await client.run({
    shell: `echo one; while [ ! -e ${go} ]; do sleep 0.01; done; echo two`,
    onStart: (task) => {
      started = task;
    },
    onOutput: async ({ data }, task) => {
      assert(!isBusy);
      isBusy = true;
      pieces.push(Buffer.from(data).toString());
      assert.equal((await task.get()).id, started?.id);
      writeFileSync(go, "");
      isBusy = false;
    },
    maxOutputBytes: 5,
  });
  assert.deepEqual(pieces, ["one\n", "two\n"]);
  assert.equal(started?.id, result.task.id);
  assert.equal(result.stdout, "one\nt");
  assert.equal(result.isTruncated, true);
});

/** F4 */
test("run returns when the task is detached, with the output so far", async () => {
  const result = await client.run({
    shell: "echo up; exec sleep 600",
    foreground: { timeoutMs: 2000 },
  });
  assert.equal(result.reason, AttachEndReason.DETACHED);
  assert.equal(result.task.detachment?.cause, DetachCause.FOREGROUND_TIMEOUT);
  assert.equal(result.stdout, "up\n");
  assert.equal((await client.task(result.task.id).get()).state, TaskState.RUNNING);

  const cancelled = await client.run({
    argv: ["sleep", "600"],
    foreground: { timeoutMs: 100, onTimeout: "cancel" },
  });
  assert.equal(cancelled.task.state, TaskState.TIMED_OUT);
});

/** F1 */
test("a run is detached through its handle", async () => {
  const result = await client.run({
    argv: ["sleep", "600"],
    onStart: async (task) => {
      await task.detach({ reason: "a key" });
    },
  });
  assert.equal(result.reason, AttachEndReason.DETACHED);
  assert.equal(result.task.detachment?.reason, "a key");
});

/** X1 */
test("a run waits in its queue", async () => {
  await client.updateQueue("slots", { paused: true });
  const running = client.run({
    shell: "echo mine; exit 6",
    queue: "slots",
    onStart: async (task) => {
      assert.equal((await task.get()).state, TaskState.QUEUED);
      await client.updateQueue("slots", { paused: false });
    },
  });
  const { task, stdout } = await running;
  assert.equal(task.exitCode, 6);
  assert.equal(stdout, "mine\n");
});

/** A1 */
test("a run of a script that ends in & returns at once", async () => {
  const { reason, task, notices } = await client.run({ shell: "sleep 600 &" });
  assert.equal(reason, AttachEndReason.DETACHED);
  assert.equal(task.placement, Placement.BACKGROUND);
  assert.equal(notices[0]?.type, SpawnNoticeType.TRAILING_AMPERSAND);
});

/** C4, F13 */
test("an abort stops the command and its tree, and its reason is kept with the task", async () => {
  const abort = new AbortController();
  const sessionId = "abort";
  let text = "";
  const running = client.run({
    sessionId,
    shell: "trap 'echo bye; exit 0' TERM; setsid sleep 600 & echo up; wait",
    signal: abort.signal,
    onOutput: ({ data }) => {
      text += Buffer.from(data).toString();
      abort.abort(new Error("enough"));
    },
  });
  await assert.rejects(running, /enough/u);
  const [task] = await collect(client.list({ filter: { sessionId }, ...ALL }));
  assert.equal(task?.state, TaskState.CANCELLED);
  assert.equal(task.endReason, EndReason.CANCELLED);
  assert.equal(task.stop?.reason, "enough");
  assert.equal(task.stop.proof?.result.case, "proven");
  assert.match(text, /^up\n/u);
});

test("an abort before the start starts nothing, and one during it leaves nothing behind", async () => {
  const reason = new Error("enough");
  const options = { argv: ["sleep", "600"] };
  const early = { ...options, sessionId: "early", signal: AbortSignal.abort(reason) };
  await assert.rejects(client.run(early), reason);
  const none = client.list({ filter: { sessionId: "early" }, ...ALL });
  assert.deepEqual(await collect(none), []);

  const abort = new AbortController();
  const running = client.run({ ...options, sessionId: "during", signal: abort.signal });
  abort.abort(reason);
  await assert.rejects(running, reason);
  assert.equal((await ended("during")).endReason, EndReason.CANCELLED);
});

/** F5, F13 */
test("an abort detaches on request with its reason, and has no effect after the end", async () => {
  const abort = new AbortController();
  const sessionId = "detach";
  const { signal } = abort;
  const running = client.run({
    sessionId,
    shell: "echo up; exec sleep 600",
    signal,
    onAbort: "detach",
    onOutput: () => {
      abort.abort(new Error("enough"));
    },
  });
  await assert.rejects(running, /enough/u);
  const [task] = await collect(client.list({ filter: { sessionId } }));
  assert.equal(task?.state, TaskState.RUNNING);
  assert.equal(task.detachment?.cause, DetachCause.REQUESTED);
  assert.equal(task.detachment.reason, "enough");

  const late = new AbortController();
  const options = { argv: ["sleep", "600"], foreground: { timeoutMs: 50 }, signal: late.signal };
  for await (const item of client.runStream(options)) {
    if (item.kind === "ended") {
      late.abort();
      const { state } = await client.task(item.task.id).get();
      assert.equal(state, TaskState.RUNNING);
    }
  }
});

/** F13 */
test("leaving the loop of a run, or an error in a callback, stops the command with a reason", async () => {
  let left: Task | undefined;
  for await (const item of client.runStream({ shell: "echo up; exec sleep 600" })) {
    if (item.kind === "started") {
      left = item.task;
    }
    if (item.kind === "output") {
      break;
    }
  }
  const stopped = await left?.get();
  assert.equal(stopped?.endReason, EndReason.CANCELLED);
  assert.equal(stopped.stop?.reason, "the caller left the run");

  const failing = client.run({
    sessionId: "failing",
    shell: "echo up; exec sleep 600",
    onOutput: () => {
      throw new Error("the disk is full");
    },
  });
  await assert.rejects(failing, /the disk is full/u);
  const failed = await ended("failing");
  assert.equal(failed.endReason, EndReason.CANCELLED);
  assert.equal(failed.stop?.reason, "the disk is full");
});

test("a run that goes out of scope stops the command", async () => {
  let task: Task;
  {
    await using items = client.runStream({ argv: ["sleep", "600"] });
    const { value } = await items.next();
    assert(value?.kind === "started");
    task = value.task;
  }
  assert.equal((await task.get()).endReason, EndReason.CANCELLED);
});

/** R1 */
test("a run continues across a kill of the daemon", async () => {
  const go = join(daemon.dir, "go-on");
  let text = "";
  const running = client.run({
    shell: `echo one; while [ ! -e ${go} ]; do sleep 0.01; done; echo two; exit 5`,
    foreground: { reattachWindowMs: 60_000 },
    onOutput: ({ data }) => {
      text += Buffer.from(data).toString();
    },
  });
  await until("the first line", () => (text === "one\n" ? true : undefined));
  await daemon.kill();
  await daemon.restart();
  assert(!existsSync(go));
  writeFileSync(go, "");
  const { task, stdout } = await running;
  assert.equal(task.exitCode, 5);
  assert.equal(stdout, "one\ntwo\n");
});

test("a run rejects with the failure of its cancel", async () => {
  await using lone = await Daemon.start();
  using unrepeated = await lone.connect(0);
  const abort = new AbortController();
  const running = unrepeated.run({
    shell: "echo up; exec sleep 600",
    signal: abort.signal,
    onOutput: async () => {
      await lone.kill();
      abort.abort(new Error("enough"));
    },
  });
  await assert.rejects(running, (error) => {
    // It depends on whether the connection is known to be broken.
    return error instanceof NotRunningError || error instanceof DisconnectedError;
  });
});

test("a command that cannot be run is refused with a reason", async () => {
  await assert.rejects(client.run({ argv: ["no-such-program"] }), { reason: "PROGRAM_UNUSABLE" });
  const options = { argv: ["true"] };
  await assert.rejects(client.run({ ...options, maxOutputBytes: -1 }), /maxOutputBytes/u);
  const onAbort = "leave" as "detach";
  await assert.rejects(
    client.run({ ...options, onAbort }),
    /onAbort must be one of cancel, detach/u,
  );
  await assert.rejects(client.run({ ...options, foreground: { timeoutMs: -1 } }), (error) => {
    assert(error instanceof Error && "fields" in error);
    assert.match(JSON.stringify(error.fields), /spec.foreground.timeout/u);
    return true;
  });
});
