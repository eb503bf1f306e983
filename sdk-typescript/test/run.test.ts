import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import {
  type BackgroundTask,
  DetachCause,
  DisconnectedError,
  EndReason,
  exitCode,
  type HeelerClient,
  NotRunningError,
  Placement,
  ReleaseReason,
  SpawnNoticeType,
  type Task,
  TaskState,
} from "../src/index.js";
import { collect } from "./collect.js";
import { Daemon, until } from "./daemon.js";

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

/** The only task of a session, once it is over. */
async function ended(sessionId: string): Promise<BackgroundTask> {
  await client.wait({ sessionId });
  const [task] = await collect(client.list({ filter: { sessionId }, includeFinished: true }));
  assert(task);
  return task;
}

/** F11 */
test("run gives the output and the exit code", async () => {
  const result = await client.run({ shell: "echo out; echo err >&2; exit 4" });
  assert.equal(result.reason, ReleaseReason.FINISHED);
  assert.equal(exitCode(result.task), 4);
  assert.equal(result.stdout, "out\n");
  assert.equal(result.stderr, "err\n");
  assert.equal(result.isTruncated, false);
  assert.deepEqual(result.notices, []);
});

test("run hands out the handle and each piece, one after the other", async () => {
  const go = join(daemon.dir, "go");
  const told: string[] = [];
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
      told.push(Buffer.from(data).toString());
      assert.equal((await task.snapshot()).id, started?.id);
      writeFileSync(go, "");
      isBusy = false;
    },
    maxOutputBytes: 5,
  });
  assert.deepEqual(told, ["one\n", "two\n"]);
  assert.equal(started?.id, result.task.id);
  assert.equal(result.stdout, "one\nt");
  assert.equal(result.isTruncated, true);
});

/** F4 */
test("run ends with a release into the background, and what came before it", async () => {
  const result = await client.run({ shell: "echo up; exec sleep 600", foregroundTimeoutMs: 2000 });
  assert.equal(result.reason, ReleaseReason.DETACHED);
  assert.equal(result.task.detached?.cause, DetachCause.FOREGROUND_TIMEOUT);
  assert.equal(result.stdout, "up\n");
  assert.equal((await client.task(result.task.id).snapshot()).state, TaskState.RUNNING);

  const cancelled = await client.run({
    argv: ["sleep", "600"],
    foregroundTimeoutMs: 100,
    onForegroundTimeout: "cancel",
  });
  assert.equal(cancelled.task.state, TaskState.TIMED_OUT);
});

/** F1 */
test("another part detaches a run by its handle", async () => {
  const result = await client.run({
    argv: ["sleep", "600"],
    onStart: async (task) => {
      await task.detach({ reason: "a key" });
    },
  });
  assert.equal(result.reason, ReleaseReason.DETACHED);
  assert.equal(result.task.detached?.reason, "a key");
});

/** X1 */
test("a run waits for its turn", async () => {
  await client.updateQueue("turns", { paused: true });
  const running = client.run({
    shell: "echo mine; exit 6",
    queue: "turns",
    onStart: async (task) => {
      assert.equal((await task.snapshot()).state, TaskState.QUEUED);
      await client.updateQueue("turns", { paused: false });
    },
  });
  const { task, stdout } = await running;
  assert.equal(exitCode(task), 6);
  assert.equal(stdout, "mine\n");
});

/** A1 */
test("a script that goes into the background by itself holds nobody", async () => {
  const { reason, task, notices } = await client.run({ shell: "sleep 600 &" });
  assert.equal(reason, ReleaseReason.DETACHED);
  assert.equal(task.placement, Placement.BACKGROUND);
  assert.equal(notices[0]?.type, SpawnNoticeType.TRAILING_AMPERSAND);
});

/** C4 */
test("an abort stops the command and its tree before it rejects", async () => {
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
  const [task] = await collect(client.list({ filter: { sessionId }, includeFinished: true }));
  assert.equal(task?.state, TaskState.CANCELLED);
  assert.equal(task.endReason, EndReason.CANCELLED);
  assert.deepEqual(task.stop?.proof?.survivors, []);
  assert.match(text, /^up\n/u);
});

test("an abort before the start starts nothing, and one during it leaves nothing behind", async () => {
  const reason = new Error("enough");
  const options = { argv: ["sleep", "600"] };
  const early = { ...options, sessionId: "early", signal: AbortSignal.abort(reason) };
  await assert.rejects(client.run(early), reason);
  const none = client.list({ filter: { sessionId: "early" }, includeFinished: true });
  assert.deepEqual(await collect(none), []);

  const abort = new AbortController();
  const running = client.run({ ...options, sessionId: "during", signal: abort.signal });
  abort.abort(reason);
  await assert.rejects(running, reason);
  assert.equal((await ended("during")).endReason, EndReason.CANCELLED);
});

/** F5 */
test("an abort detaches if that was asked for, and reaches nobody after the release", async () => {
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
  assert.equal(task.detached?.cause, DetachCause.REQUESTED);

  const late = new AbortController();
  const options = { argv: ["sleep", "600"], foregroundTimeoutMs: 50, signal: late.signal };
  for await (const item of client.runStream(options)) {
    if (item.kind === "released") {
      late.abort();
      const { state } = await client.task(item.task.id).snapshot();
      assert.equal(state, TaskState.RUNNING);
    }
  }
});

test("whoever leaves the loop of a run, or fails in it, stops the command", async () => {
  let left: Task | undefined;
  for await (const item of client.runStream({ shell: "echo up; exec sleep 600" })) {
    if (item.kind === "started") {
      left = item.task;
    }
    if (item.kind === "output") {
      break;
    }
  }
  assert.equal((await left?.snapshot())?.endReason, EndReason.CANCELLED);

  const failing = client.run({
    sessionId: "failing",
    shell: "echo up; exec sleep 600",
    onOutput: () => {
      throw new Error("the disk is full");
    },
  });
  await assert.rejects(failing, /the disk is full/u);
  assert.equal((await ended("failing")).endReason, EndReason.CANCELLED);
});

/** R1 */
test("a run goes on across a kill of the daemon", async () => {
  const go = join(daemon.dir, "go-on");
  let text = "";
  const running = client.run({
    shell: `echo one; while [ ! -e ${go} ]; do sleep 0.01; done; echo two; exit 5`,
    holderWindowMs: 60_000,
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
  assert.equal(exitCode(task), 5);
  assert.equal(stdout, "one\ntwo\n");
});

test("an abort that could not be carried out says so", async () => {
  await using lone = await Daemon.start();
  using impatient = await lone.connect(0);
  const abort = new AbortController();
  const running = impatient.run({
    shell: "echo up; exec sleep 600",
    signal: abort.signal,
    onOutput: async () => {
      await lone.kill();
      abort.abort(new Error("enough"));
    },
  });
  await assert.rejects(running, (error) => {
    // Which of the two depends on what has noticed first.
    return error instanceof NotRunningError || error instanceof DisconnectedError;
  });
});

test("what cannot be run is refused by name", async () => {
  await assert.rejects(client.run({ argv: ["no-such-program"] }), { reason: "PROGRAM_UNUSABLE" });
  const options = { argv: ["true"] };
  await assert.rejects(client.run({ ...options, maxOutputBytes: -1 }), /maxOutputBytes/u);
  const onAbort = "leave" as "detach";
  await assert.rejects(
    client.run({ ...options, onAbort }),
    /onAbort must be one of cancel, detach/u,
  );
  await assert.rejects(client.run({ ...options, foregroundTimeoutMs: -1 }), (error) => {
    assert(error instanceof Error && "fields" in error);
    assert.match(JSON.stringify(error.fields), /foreground_timeout/u);
    return true;
  });
});
