import assert from "node:assert/strict";
import { test } from "node:test";

import { TaskEventType, TaskState } from "../../src/index.js";
import { collect } from "../support/collect.js";
import { Daemon } from "../support/daemon.js";

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
