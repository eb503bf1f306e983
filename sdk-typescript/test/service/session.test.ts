import assert from "node:assert/strict";
import { test } from "node:test";

import { TaskEventType, TaskState, toDate } from "../../src/index.js";
import { collect } from "../support/collect.js";
import { Daemon, until } from "../support/daemon.js";

test("a session has only its own tasks", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const session = client.session("one");
  const other = await client.session("other").spawn({ argv: ["sleep", "600"] });
  const shell = await session.spawn({ shell: "sleep 600" });
  const agent = await session.spawn({ argv: ["sleep", "600"], kind: "agent" });
  const ids = (await collect(session.list())).map(({ id }) => id);
  assert.deepEqual(new Set(ids), new Set([shell.id, agent.id]));
  const agents = await collect(session.list({ filter: { kinds: ["agent"] } }));
  assert.deepEqual(
    agents.map(({ id }) => id),
    [agent.id],
  );
  assert.deepEqual(await session.counts(), { agents: 1, shells: 1, hosted: 0 });

  const [stopped] = await session.cancel({ filter: { kinds: ["agent"] }, reason: "superseded" });
  assert.equal(stopped?.task?.id, agent.id);
  assert.equal(stopped.task.stop?.reason, "superseded");
  assert.deepEqual(await session.counts(), { agents: 0, shells: 1, hosted: 0 });
  assert.equal((await session.cancel({ force: true })).length, 1);
  assert.deepEqual(await session.counts(), { agents: 0, shells: 0, hosted: 0 });
  assert.deepEqual(await session.cancel(), []);
  assert.equal((await other.get()).state, TaskState.RUNNING);
  assert.throws(() => client.session(""), /cannot be empty/u);
});

test("a command in the foreground belongs to the session", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const result = await client.session("s").run({ shell: "echo hello; exit 3", name: "greeting" });
  assert.deepEqual([result.stdout, result.exitCode], ["hello\n", 3]);
  assert.deepEqual([result.task.spec?.sessionId, result.task.spec?.name], ["s", "greeting"]);
});

/** E9, L8 */
test("sessions are listed with the ids of their live tasks, and say if all are stale", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  assert.deepEqual(await collect(client.sessions()), []);
  const session = client.session("b");
  assert.equal(await session.info(), undefined);
  const before = Date.now();
  const shell = await session.spawn({ argv: ["sleep", "600"], silence: { staleAfterMs: 200 } });
  const agent = await session.spawn({ argv: ["sleep", "600"], kind: "agent" });
  await using work = await client.register({ sessionId: "b" });
  for (const id of ["a", "c", "d"]) {
    await client.session(id).spawn({ argv: ["sleep", "600"] });
  }
  const ids = (await collect(client.sessions({ pageSize: 2 }))).map(
    (one) => one.activity?.sessionId,
  );
  assert.deepEqual(ids, ["a", "b", "c", "d"]);
  const info = await session.info();
  assert.deepEqual(
    [info?.activity?.shellIds, info?.activity?.agentIds, info?.activity?.hostedIds],
    [[shell.id], [agent.id], [work.task.id]],
  );
  assert.equal(info?.onlyStale, false);
  assert((toDate(info.sinceTime)?.getTime() ?? 0) >= before - 1000);
  assert((toDate(info.activityTime)?.getTime() ?? 0) >= before - 1000);

  await agent.cancel();
  await work.finish("done");
  const stale = await until("only a stale task is left", async () => {
    const left = await session.info();
    return left?.onlyStale === true ? left : undefined;
  });
  assert.deepEqual([stale.activity?.stale, stale.activity?.shellIds], [1, [shell.id]]);
  for await (const item of session.watch({ after: 0n, types: ["stale"] })) {
    if (item.kind === "event") {
      const { sessionActivity } = item.event;
      assert.equal(sessionActivity?.stale, 1);
      assert(sessionActivity.shellIds.includes(shell.id));
      break;
    }
  }
  await assert.rejects(client.listSessions({ pageToken: "x" }), { code: "INVALID_ARGUMENT" });
});

/** E9, R1 */
test("idle is returned at once, or after the last task, across a kill of the daemon", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const session = client.session("s");
  await session.waitUntilIdle();
  const first = await session.spawn({ argv: ["sleep", "600"] });
  let isIdle = false;
  const idle = session.waitUntilIdle().then(() => {
    isIdle = true;
  });
  const second = await session.spawn({ argv: ["sleep", "600"] });
  await first.cancel();
  await daemon.kill();
  await daemon.restart();
  assert.equal((await second.get()).state, TaskState.RUNNING);
  assert.equal(isIdle, false);
  await second.cancel();
  await idle;
});

test("a wait for idle ends with the reason of its signal, and ends no task", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const session = client.session("s");
  const task = await session.spawn({ argv: ["sleep", "600"] });
  const signal = AbortSignal.timeout(50);
  await assert.rejects(session.waitUntilIdle({ signal }), { name: "TimeoutError" });
  assert.equal((await task.get()).state, TaskState.RUNNING);
});

/** E9 */
test("the first item of a watch is a bookmark, and events have counts or none", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const session = client.session("s");
  await using watch = session.watch();
  assert.equal((await watch.next()).value?.kind, "bookmark");
  const task = await session.spawn({ argv: ["sleep", "600"], kind: "agent" });
  await task.cancel();
  const counted: [string, number | undefined][] = [];
  for await (const item of watch) {
    if (item.kind === "event") {
      const { type, sessionActivity } = item.event;
      counted.push([TaskEventType[type], sessionActivity?.agents]);
      if (type === TaskEventType.SESSION_IDLE) {
        break;
      }
    }
  }
  assert.deepEqual(counted, [
    ["CREATED", 1],
    ["STARTED", undefined],
    ["STOPPING", undefined],
    ["ENDED", 0],
    ["SESSION_IDLE", 0],
  ]);
});

/** E10 */
test("the tasks of a session end with the watch that owns it, not with a restart", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const session = client.session("s");
  const abort = new AbortController();
  const owner = session.watch({
    ownSession: { sessionId: "s", reattachWindowMs: 2_000 },
    signal: abort.signal,
  });
  const first = await owner.next();
  assert.equal(first.value?.kind, "bookmark");
  const task = await session.spawn({ argv: ["sleep", "600"] });
  assert.equal((await session.info())?.owners, 1);
  await daemon.kill("SIGKILL");
  await daemon.restart();
  const again = collect(owner);
  await until("the owner is back", async () => {
    const info = await session.info();
    return info?.owners === 1 ? info : undefined;
  });
  abort.abort();
  await assert.rejects(again);
  const ended = await task.wait();
  assert.equal(ended.state, TaskState.CANCELLED);
  assert.equal(ended.stop?.reason, 'the last owner of session "s" is gone');
});
