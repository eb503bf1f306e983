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
  UnreachableError,
} from "../../src/index.js";
import { Daemon } from "../support/daemon.js";

test("the error for a missing daemon has its address and the command that starts it", async () => {
  const address = "unix:/nowhere/heeler.sock";
  await assert.rejects(HeelerClient.connect({ address }), (error) => {
    assert(error instanceof NotRunningError);
    assert.match(error.message, /start one with `heeler serve --listen unix:\/nowhere/u);
    assert.equal(error.address, address);
    return true;
  });
});

test("a daemon that dies or has no room, and a network that fails, are tried again", () => {
  for (const [code, isTransient] of [
    ["EAGAIN", true],
    ["ECONNRESET", true],
    ["ENETUNREACH", true],
    ["EHOSTUNREACH", true],
    ["ETIMEDOUT", true],
    ["EAI_AGAIN", true],
    ["EACCES", false],
    ["CERT_HAS_EXPIRED", false],
  ] as const) {
    assert.equal(new UnreachableError("unix:/s", code, "no").isTransient, isTransient, code);
  }
});

test("the address comes from the environment, and a bad one is refused", async () => {
  const script = 'import("./index.js").then(({HeelerClient}) => HeelerClient.connect())';
  const cwd = new URL("../../src", import.meta.url);
  const connect = async (address: string): Promise<string> => {
    const env = { ...process.env, HEELER_ADDR: address };
    const done = promisify(execFile)(process.execPath, ["-e", script], { cwd, env });
    return await done.then(
      () => "connected",
      (error: unknown) => (error as { stderr: string }).stderr,
    );
  };
  assert.match(await connect(`unix:/${"x".repeat(107)}`), /108 bytes; the limit is 107/u);
  assert.match(await connect("http://127.0.0.1:1"), /is not an address/u);
  await using daemon = await Daemon.start();
  assert.equal(await connect(daemon.address), "connected", "and nothing keeps the process alive");
});

/** S2, S3, S4, S9, L6, C9 */
test("a refusal has its reason, its metadata and the bad fields", async () => {
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
  await assert.rejects(client.spawn({ argv: ["true"], stop: { graceMs: -1 } }), (error) => {
    assert(error instanceof RefusedError);
    assert.equal(error.reason, "INVALID_FIELD");
    assert.equal(error.fields[0]?.field, "spec.stop.grace");
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

test("an option that cannot be sent is refused by its name", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  const both = { shell: "true", argv: ["true"] } as unknown as { shell: string };
  await assert.rejects(client.spawn(both), /either shell or argv/u);
  await assert.rejects(client.spawn({} as { shell: string }), { reason: "INVALID_FIELD" });
  await assert.rejects(client.spawn({ shell: "true", timeoutMs: NaN }), /timeoutMs/u);
  const task = client.task("x");
  await assert.rejects(task.waitFor(NaN), /timeoutMs must be a number/u);
  const until = "over" as "finished";
  await assert.rejects(task.wait({ until }), /until must be one of finished, outOfForeground/u);
  const misplaced = { graceMs: 1 } as object;
  await assert.rejects(task.cancel(misplaced), /there is no option graceMs/u);
  await assert.rejects(task.output({ offset: 0n, tailBytes: 1 }).next(), /either offset/u);
  await assert.rejects(task.get({ deadlineMs: NaN }), /deadlineMs/u);
  await assert.rejects(client.inspect("x", { outputTailBytes: 0.5 }), { kind: "protocol" });
});

/** N3 */
test("a request that is too large is refused, and the connection stays usable", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  const environment = { variables: { BIG: "x".repeat(8 << 20) } };
  await assert.rejects(client.spawn({ argv: ["true"], environment }), (error) => {
    assert(error instanceof RefusedError);
    assert.match(error.message, /larger than/u);
    assert(error.is("REQUEST_TOO_LARGE"));
    assert(Number(error.metadata["max"]) > 0);
    return true;
  });
  assert.deepEqual((await client.listPage()).tasks, []);
});

/** L5, C15 */
test("a deadline or an abort ends the call and no task", async () => {
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
  const far = await task.get({ deadlineMs: 2 ** 40 });
  assert.equal(far.state, TaskState.RUNNING);
});

/** R1 */
test("a call in progress when the daemon is killed is repeated at the next daemon", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  using unrepeated = await daemon.connect(0);
  const task = await client.spawn({ argv: ["sleep", "600"] });
  const repeatedWait = client.task(task.id).wait();
  const failingWait = assert.rejects(unrepeated.task(task.id).wait(), DisconnectedError);
  // Both are in progress once a later call on each connection has been answered.
  await Promise.all([client.listPage(), unrepeated.listPage()]);
  await daemon.kill();
  await failingWait;
  await assert.rejects(unrepeated.listPage(), NotRunningError);
  await assert.rejects(client.listPage({ deadlineMs: 100 }), DeadlineError);
  await daemon.restart();
  await client.task(task.id).cancel();
  assert.equal((await repeatedWait).state, TaskState.CANCELLED);
});

test("a closed client rejects later calls and those in progress", async () => {
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

test("await using closes the client at the end of the scope", async () => {
  await using daemon = await Daemon.start();
  let left: HeelerClient;
  {
    await using client = await daemon.connect();
    await client.listPage();
    left = client;
  }
  await assert.rejects(left.listPage(), ClosedError);
});

/** R7 */
test("shutdown ends the daemon, and is not repeated at the next one", async () => {
  await using daemon = await Daemon.start();
  using client = await daemon.connect();
  await client.spawn({ argv: ["sleep", "600"] });
  const answer = await client.shutdown({ reason: "upgrade" });
  assert.equal(answer.liveTasks, 1);
  assert.equal(answer.stoppedTasks, 0);
  await daemon.ended();
  await assert.rejects(client.shutdown(), NotRunningError);
});
