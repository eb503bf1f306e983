import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as rest } from "node:timers/promises";

import {
  type BackgroundTask,
  type Body,
  CancelledError,
  EndReason,
  type HeelerClient,
  type HostOptions,
  TaskEventType,
  TaskState,
  WorkCancelMode,
  WorkerStatus,
  type Work,
} from "../../src/index.js";
import { collect } from "../support/collect.js";
import { Daemon, until } from "../support/daemon.js";

/** Waits for an abort. */
async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) {
    await new Promise((resolve) => {
      signal.addEventListener("abort", resolve, { once: true });
    });
  }
}

/** Hosts a body, and returns its handle once it runs. */
async function begin(
  client: HeelerClient,
  options: HostOptions,
  body: Body,
): Promise<{ work: Work; ended: Promise<BackgroundTask> }> {
  let begun: (work: Work) => void;
  const work = new Promise<Work>((resolve) => {
    begun = resolve;
  });
  const ended = client.host(options, async (own) => {
    begun(own);
    return await body(own);
  });
  ended.catch(() => undefined);
  return { work: await work, ended };
}

/** P2, P7 */
test("a hosted body reports, and its value is the result", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const session = client.session("s");
  let id = "";
  const ended = await session.host({ name: "review", labels: { team: "red" } }, async (work) => {
    id = work.task.id;
    const listed = await collect(session.list({ filter: { kinds: ["hosted"] } }));
    assert.deepEqual(
      listed.map(({ id: listedId, state }) => [listedId, state]),
      [[id, TaskState.RUNNING]],
    );
    assert.deepEqual(await session.counts(), { agents: 0, shells: 0, hosted: 1 });
    const { progress } = work;
    await progress.intent("reads the tests");
    await progress.percent(40);
    await progress.counts({ toolCalls: 1, tokens: 12_345n });
    await progress.thought("there may be a bug");
    await progress.toolCall("grep", "-rn TODO");
    await progress.toolResult("grep", "src/a.ts:3");
    await progress.text("one finding");
    await progress.note("done");
    assert.equal(work.cancelRequest, undefined);
    return { text: "one finding", data: Uint8Array.of(0, 255) };
  });
  assert.equal(ended.id, id);
  assert.match(ended.id, /^hosted-/u);
  assert.equal(ended.state, TaskState.COMPLETED);
  assert.deepEqual(ended.outcome?.result, { case: "worker", value: WorkerStatus.OK });
  assert.equal(ended.result?.text, "one finding");
  assert.deepEqual([...ended.result.data], [0, 255]);
  const { task, blocks } = await client.inspect(id);
  assert(task !== undefined);
  assert.deepEqual(task.result, ended.result);
  assert.equal(task.progress?.intent, "reads the tests");
  assert.equal(task.progress.percent, 40);
  assert.deepEqual(task.progress.counts, { toolCalls: 1n, tokens: 12_345n });
  assert.deepEqual(
    blocks.map(({ text, name }) => [text, name]),
    [
      ["there may be a bug", ""],
      ["-rn TODO", "grep"],
      ["src/a.ts:3", "grep"],
      ["one finding", ""],
      ["done", ""],
    ],
  );
  const events = await collect(client.task(id).events());
  assert.equal(events.at(-1)?.type, TaskEventType.ENDED);
  assert.equal(events.at(-1)?.task?.result?.text, "one finding");
  await session.waitUntilIdle();
});

/** P2, C11 */
test("a cancel aborts the soft signal, then the final one, with its reason", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const modes: (WorkCancelMode | undefined)[] = [];
  const { work, ended } = await begin(client, {}, async (own) => {
    await aborted(own.stopping);
    assert.equal(own.signal.aborted, false);
    modes.push(own.cancelRequest?.mode);
    await aborted(own.signal);
    modes.push(own.cancelRequest?.mode);
    own.signal.throwIfAborted();
  });
  const graceful = { softGraceMs: 300, graceMs: 20_000 };
  const { task } = await work.task.cancel({ graceful, reason: "superseded", actor: "a test" });
  assert.deepEqual(modes, [WorkCancelMode.SOFT, WorkCancelMode.FINAL]);
  assert.equal(task?.state, TaskState.CANCELLED);
  assert.equal(task.stop?.forced, false);
  assert.deepEqual((await ended).result, task.result);
  assert.equal(task.result?.status, WorkerStatus.CANCELLED);
  assert.equal(task.result.text, `${task.id} is to stop: superseded`);
  const { reason } = work.signal as { reason: unknown };
  assert(reason instanceof CancelledError);
  assert.equal(reason.request?.actor?.name, "a test");
});

/** C18, P7 */
test("a soft cancel lets the tool call finish, and its result is kept", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const finished: string[] = [];
  let isCalled = false;
  const { work, ended } = await begin(client, {}, async (own) => {
    for (const tool of ["read", "edit", "test"]) {
      if (own.stopping.aborted) {
        return { status: "cancelled", text: `finished: ${finished.join(", ")}` };
      }
      await own.progress.toolCall(tool, "");
      isCalled = true;
      if (tool === "edit") {
        await aborted(own.stopping);
        // The rest of the call.
        await rest(50, undefined, { signal: own.signal });
      }
      finished.push(tool);
    }
    return "all";
  });
  await until("a tool is called", () => isCalled || undefined);
  const { task } = await work.task.cancel({ graceful: { softGraceMs: 25_000 } });
  assert.deepEqual(finished, ["read", "edit"]);
  assert.equal(task?.state, TaskState.CANCELLED);
  assert.equal(task.result?.text, "finished: read, edit");
  assert.equal(task.stop?.forced, false);
  assert.deepEqual((await ended).result, task.result);
});

/** P4 */
test("a body that ignores a cancel is ended as forced, and learns of it", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  let canReturn = false;
  const { work, ended } = await begin(
    client,
    { stop: { softGraceMs: 0, graceMs: 100 } },
    async () => {
      await until("the task has ended", () => canReturn || undefined);
      return "too late";
    },
  );
  const { task } = await work.task.cancel();
  assert.equal(task?.state, TaskState.CANCELLED);
  assert.equal(task.stop?.forced, true);
  await aborted(work.signal);
  canReturn = true;
  const late = await ended;
  assert.equal(late.stop?.forced, true);
  assert.equal(late.result, undefined);
});

test("a body that throws fails the task, and host rejects with its error", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const error = new Error("the model is gone");
  let id = "";
  const hosted = client.host({}, (work) => {
    id = work.task.id;
    throw error;
  });
  await assert.rejects(hosted, (thrown) => thrown === error);
  const task = await client.task(id).wait();
  assert.equal(task.state, TaskState.FAILED);
  assert.equal(task.endReason, EndReason.WORKER_FAILED);
  assert.equal(task.result?.text, "the model is gone");

  const bad: [unknown, RegExp][] = [
    ["x".repeat(65_537), /has 65537 bytes, more than 65536/u],
    [{ data: new Uint8Array(65_537) }, /has 65537 bytes, more than 65536/u],
    [{ data: "text" }, /must be a Uint8Array/u],
    [{ status: "done" }, /status must be one of ok, failed, cancelled, not done/u],
    [{ findings: 3 }, /there is no option findings/u],
    [7, /must be a string, not 7/u],
  ];
  for (const [value, message] of bad) {
    const refused = client.host({}, (work) => {
      id = work.task.id;
      return value as string;
    });
    await assert.rejects(refused, message);
    assert.equal((await client.task(id).wait()).state, TaskState.FAILED);
  }
  const longest = await client.host({}, () => "x".repeat(65_536));
  assert.equal(longest.result?.text.length, 65_536);
  assert.equal((await client.host({}, () => undefined)).state, TaskState.COMPLETED);
});

test("an error that an abort causes is a cancel, any other one a failure", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const cancelled = await begin(client, {}, async ({ signal }) => {
    await rest(600_000, undefined, { signal });
  });
  await cancelled.work.task.cancel({ graceful: { softGraceMs: 0 } });
  assert.equal((await cancelled.ended).result?.status, WorkerStatus.CANCELLED);

  const failed = await begin(client, {}, async ({ signal }) => {
    await aborted(signal);
    throw new TypeError("a bug in the clean-up");
  });
  const { task } = await failed.work.task.cancel({ graceful: { softGraceMs: 0 } });
  await assert.rejects(failed.ended, /a bug in the clean-up/u);
  assert.equal(task?.state, TaskState.CANCELLED);
  assert.equal(task.result?.status, WorkerStatus.FAILED);
});

/** F13 */
test("an abort by the caller stops the body at once, and its reason is kept", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const abort = new AbortController();
  const reason = new Error("the user pressed a key");
  const { work, ended } = await begin(client, { signal: abort.signal }, async ({ signal }) => {
    await aborted(signal);
    return { status: "cancelled", text: "half of it" };
  });
  abort.abort(reason);
  assert.equal(work.signal.reason, reason);
  await assert.rejects(ended, (thrown) => thrown === reason);
  const task = await work.task.wait();
  assert.equal(task.state, TaskState.CANCELLED);
  assert.equal(task.stop?.reason, "the user pressed a key");
  assert.equal(task.result?.text, "half of it");
  const hosted = client.host({ signal: AbortSignal.abort(reason) }, () => "never");
  await assert.rejects(hosted, (thrown) => thrown === reason);
  assert.equal((await collect(client.list({ includeFinished: true }))).length, 1);
});

/** X1 */
test("a queued body begins when it is admitted, and never if it is stopped before", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const begun: string[] = [];
  const body =
    (name: string): Body =>
    async (work) => {
      begun.push(name);
      const { value } = await work.messages().next();
      return value?.text;
    };
  const first = await begin(client, { queue: "reviews" }, body("first"));
  const second = client.host({ queue: "reviews", name: "second" }, body("second"));
  const third = client.host({ queue: "reviews", name: "third" }, body("third"));
  const abort = new AbortController();
  const fourth = client.host({ queue: "reviews", name: "fourth", signal: abort.signal }, body("x"));
  const queued = async (name: string): Promise<string> =>
    await until(`${name} waits`, async () => {
      const [task] = await collect(client.list({ filter: { name, states: ["queued"] } }));
      return task?.id;
    });
  const secondId = await queued("second");
  await client.cancelBackgroundTask(await queued("third"));
  assert.equal((await third).state, TaskState.CANCELLED);
  await queued("fourth");
  abort.abort(new Error("enough"));
  await assert.rejects(fourth, /enough/u);
  assert.deepEqual(begun, ["first"]);
  await first.work.task.sendMessage({ text: "go on" });
  assert.equal((await first.ended).result?.text, "go on");
  await client.sendMessage(secondId, { text: "you too" });
  assert.equal((await second).result?.text, "you too");
  assert.deepEqual(begun, ["first", "second"]);
});

/** X1 */
test("a hosted task with a key is replaced by the next one", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const exclusive = { key: "member 1", mode: "replace" } as const;
  const first = await begin(client, { exclusive }, async ({ stopping }) => {
    await aborted(stopping);
    return { status: "cancelled", text: "as far as I got" };
  });
  const second = await client.host({ exclusive }, async () => {
    return TaskState[(await first.work.task.get()).state];
  });
  assert.equal(second.result?.text, "CANCELLED");
  assert.equal((await first.ended).endReason, EndReason.REPLACED);
});

/** F13, X1 */
test("an abort while the task is registered stops it, and the body never begins", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const exclusive = { key: "member 1", mode: "replace" } as const;
  const first = await begin(client, { exclusive, name: "first" }, async ({ stopping }) => {
    await aborted(stopping);
    // The next one waits for the end of this one.
    abort.abort(new Error("never mind"));
  });
  const abort = new AbortController();
  let hasBegun = false;
  const second = client.host({ exclusive, name: "second", signal: abort.signal }, () => {
    hasBegun = true;
  });
  await assert.rejects(second, /never mind/u);
  assert.equal((await first.ended).endReason, EndReason.REPLACED);
  const [task] = await collect(client.list({ filter: { name: "second" }, includeFinished: true }));
  assert.equal(task?.state, TaskState.CANCELLED);
  assert.equal(task.stop?.reason, "never mind");
  assert.equal(hasBegun, false);
});

/** S9 */
test("a registration that is repeated with its id returns the first end", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const once = await client.host({ requestId: "r1" }, () => "once");
  const again = await client.host({ requestId: "r1" }, () => "twice");
  assert.deepEqual([again.id, again.result?.text], [once.id, "once"]);
  assert.equal((await collect(client.list({ includeFinished: true }))).length, 1);
});
