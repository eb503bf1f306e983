import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";

import {
  ClosedError,
  DeadlineError,
  DisconnectedError,
  HeelerClient,
  NotRunningError,
  RefusedError,
  TaskState,
} from "../src/index.js";
import { Daemon } from "./daemon.js";

test("a daemon that does not run is named, and so is the way to start it", async () => {
  const address = "unix:/nowhere/heeler.sock";
  await assert.rejects(HeelerClient.connect({ address }), (error) => {
    assert(error instanceof NotRunningError);
    assert.match(error.message, /start one with `heeler serve --listen unix:\/nowhere/u);
    assert.equal(error.address, address);
    return true;
  });
});

test("the address comes from the environment, and a bad one is refused", async () => {
  const script = 'import("./index.js").then(({HeelerClient}) => HeelerClient.connect())';
  const cwd = new URL("../src", import.meta.url);
  const connect = async (address: string): Promise<string> => {
    const env = { ...process.env, HEELER_ADDR: address };
    const done = promisify(execFile)(process.execPath, ["-e", script], { cwd, env });
    return await done.then(
      () => "connected",
      (error: unknown) => (error as { stderr: string }).stderr,
    );
  };
  assert.match(await connect(`unix:/${"x".repeat(107)}`), /108 bytes, and at most 107 fit/u);
  assert.match(await connect("http://127.0.0.1:1"), /is no address/u);
  await using daemon = await Daemon.start();
  assert.equal(await connect(daemon.address), "connected", "and nothing keeps the process alive");
});

/** S2, S3, S4, S9, L6, C9 */
test("refusals carry their reason, their values and the fields", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  await assert.rejects(client.task("shell-aaaaaaaaaa").inspect(), (error) => {
    assert(error instanceof RefusedError);
    assert(error.is("TASK_NOT_FOUND"));
    assert.equal(error.code, "NOT_FOUND");
    assert.deepEqual(error.metadata, { task_id: "shell-aaaaaaaaaa" });
    assert.match(error.message, /shell-aaaaaaaaaa/u);
    return true;
  });
  await assert.rejects(client.task("shell-aaaaaaaaaa").events().next(), { code: "NOT_FOUND" });
  await assert.rejects(client.cancelBackgroundTask("nope"), { reason: "TASK_NOT_FOUND" });
  await assert.rejects(client.spawn({ argv: ["true"], graceMs: -1 }), (error) => {
    assert(error instanceof RefusedError);
    assert.equal(error.reason, "INVALID_FIELD");
    assert.equal(error.fields[0]?.field, "stop_policy.grace");
    return true;
  });
  const nowhere = { argv: ["true"], workingDirectory: "/nowhere" };
  await assert.rejects(client.spawn(nowhere), {
    reason: "WORKING_DIRECTORY_UNUSABLE",
    code: "FAILED_PRECONDITION",
  });
  await assert.rejects(client.spawn({ argv: ["no-such-program"] }), {
    reason: "PROGRAM_UNUSABLE",
  });
  const requestId = "mine";
  const task = await client.spawn({ argv: ["sleep", "600"], requestId });
  await assert.rejects(client.spawn({ argv: ["true"], requestId }), {
    reason: "REQUEST_ID_REUSED",
    metadata: { request_id: requestId, task_id: task.id },
  });
  await assert.rejects(task.remove(), { reason: "TASK_NOT_FINISHED" });
  assert.equal((await client.listPage({ includeFinished: true })).tasks.length, 1);
});

test("what cannot be a request is refused by its name, before it is sent", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  const both = { shell: "true", argv: ["true"] } as unknown as { shell: string };
  await assert.rejects(client.spawn(both), /either shell or argv/u);
  await assert.rejects(client.spawn({} as { shell: string }), { reason: "INVALID_FIELD" });
  await assert.rejects(client.spawn({ shell: "true", timeoutMs: NaN }), /timeoutMs/u);
  const task = client.task("x");
  await assert.rejects(task.waitFor(NaN), /timeoutMs must be a number/u);
  await assert.rejects(task.cancel({ mode: "kill" as "force" }), /mode must be one of graceful/u);
  await assert.rejects(task.output({ offset: 0n, tailBytes: 1 }).next(), /either offset/u);
  await assert.rejects(task.snapshot({ deadlineMs: NaN }), /deadlineMs/u);
  await assert.rejects(client.inspect("x", { outputTailBytes: 0.5 }), { kind: "protocol" });
});

/** N3 */
test("a message that is too large is refused, and the connection goes on", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  const env = { BIG: "x".repeat(8 << 20) };
  await assert.rejects(client.spawn({ argv: ["true"], env }), (error) => {
    assert(error instanceof RefusedError);
    assert.match(error.message, /too large/u);
    assert(error.is("REQUEST_TOO_LARGE"));
    assert(Number(error.metadata["max"]) > 0);
    return true;
  });
  assert.deepEqual((await client.listPage()).tasks, []);
});

/** L5, C15 */
test("a deadline and an abort end the call and no task", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  const task = await client.spawn({ argv: ["sleep", "600"] });
  await assert.rejects(task.wait({ deadlineMs: 50 }), (error) => {
    assert(error instanceof DeadlineError);
    assert.equal(error.deadlineMs, 50);
    return true;
  });
  await assert.rejects(task.wait({ deadlineMs: 0 }), DeadlineError);
  const reason = new Error("enough");
  const abort = new AbortController();
  const waiting = task.wait({ signal: abort.signal });
  abort.abort(reason);
  await assert.rejects(waiting, reason);
  await assert.rejects(task.wait({ signal: AbortSignal.abort(reason) }), reason);
  await assert.rejects(task.wait({ signal: AbortSignal.timeout(20) }), { name: "TimeoutError" });
  const far = await task.snapshot({ deadlineMs: 2 ** 40 });
  assert.equal(far.state, TaskState.RUNNING);
});

/** R1 */
test("a call in flight when the daemon is killed is asked again of the next one", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  using impatient = await daemon.connect(0);
  const task = await client.spawn({ argv: ["sleep", "600"] });
  const patientWait = client.task(task.id).wait();
  const impatientWait = assert.rejects(impatient.task(task.id).wait(), DisconnectedError);
  // Both are under way once a later call on each connection has been answered.
  await Promise.all([client.listPage(), impatient.listPage()]);
  await daemon.kill();
  await impatientWait;
  await assert.rejects(impatient.listPage(), NotRunningError);
  await assert.rejects(client.listPage({ deadlineMs: 100 }), DeadlineError);
  await daemon.restart();
  await client.task(task.id).cancel();
  assert.equal((await patientWait).state, TaskState.CANCELLED);
});

test("a closed client says so, also to the calls under way", async () => {
  await using daemon = await Daemon.start();
  const client = await daemon.connect();
  const task = await client.spawn({ argv: ["sleep", "600"] });
  const waiting = assert.rejects(task.wait(), ClosedError);
  const watching = assert.rejects(
    (async () => {
      for await (const item of client.watch()) {
        if (item.kind === "bookmark") {
          client.close();
        }
      }
    })(),
    ClosedError,
  );
  await Promise.all([waiting, watching]);
  await assert.rejects(client.listPage(), ClosedError);
});

/** R7 */
test("shutdown ends the daemon, and is not asked of the next one", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  await client.spawn({ argv: ["sleep", "600"] });
  const answer = await client.shutdown({ reason: "upgrade" });
  assert.equal(answer.liveTasks, 1);
  assert.equal(answer.stoppedTasks, 0);
  await daemon.ended();
  await assert.rejects(client.shutdown(), NotRunningError);
});
