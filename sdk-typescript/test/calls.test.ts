import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import {
  CancelOutcome,
  EndReason,
  exitCode,
  type HeelerClient,
  ProofMethod,
  TaskEventType,
  TaskKind,
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

/** S1 */
test("spawn returns while the command runs, and list shows it", async () => {
  const { task, revision } = await client.spawnResponse({
    argv: ["sleep", "600"],
    sessionId: "spawn",
    name: "sleeper",
    kind: TaskKind.AGENT,
    labels: { team: "red" },
    workingDirectory: "/",
    graceMs: 0,
  });
  assert.equal(task?.state, TaskState.RUNNING);
  assert(revision > 0n);
  const filter = { sessionId: "spawn", labels: { team: "red" }, kinds: [TaskKind.AGENT] };
  const [listed, ...more] = await collect(client.list({ filter }));
  assert.deepEqual(more, []);
  assert.equal(listed?.id, task.id);
  assert(listed.leader?.pid);
  assert.equal(listed.name, "sleeper");
  assert.deepEqual(await collect(client.list({ filter: { sessionId: "nobody" } })), []);
  await client.cancel({ sessionId: "spawn" });
});

test("a task's environment, shell and exit code are what was asked for", async () => {
  const task = await client.spawn({
    shell: 'echo "$GREETING $0"; exit 3',
    shellProgram: "/bin/sh",
    env: { GREETING: "hello" },
    envRemove: ["HOME"],
  });
  const ended = await task.wait();
  assert.equal(ended.state, TaskState.FAILED);
  assert.equal(exitCode(ended), 3);
  const lines = await collect(task.lines());
  assert.deepEqual(
    lines.map(({ text }) => text),
    ["hello sh"],
  );
});

/** S9 */
test("the same request id gives the same task", async () => {
  const options = { argv: ["true"], requestId: "once" };
  const [first, second] = await Promise.all([client.spawn(options), client.spawn(options)]);
  assert.equal(first.id, second.id);
});

/** C4, C14 */
test("cancel ends the whole tree and says how that was proven", async () => {
  const task = await client.spawn({
    shell: "setsid sleep 600 & (sleep 600 &) ; trap '' TERM; while :; do sleep 1; done",
  });
  const before = await task.inspect();
  assert(before.processes.length > 0);
  const result = await task.cancel({ graceMs: 50, reason: "not needed", actor: "test" });
  assert.equal(result.outcome, CancelOutcome.REQUESTED);
  assert.equal(result.task?.state, TaskState.CANCELLED);
  assert.equal(result.task.stop?.reason, "not needed");
  assert.equal(result.task.stop.actor?.name, "test");
  assert(result.proof);
  assert([ProofMethod.CGROUP_EMPTY, ProofMethod.NO_CHILDREN].includes(result.proof.method));
  assert.deepEqual(result.proof.survivors, []);
  assert.deepEqual((await task.inspect()).processes, []);

  const again = await client.cancelBackgroundTask(task.id, { mode: "force" });
  assert.equal(again.outcome, CancelOutcome.ALREADY_FINISHED, "C9");
});

/** C12 */
test("a cascade reaches children, and the answer is still the task's own", async () => {
  const parent = await client.spawn({ argv: ["sleep", "600"] });
  const child = await client.spawn({ argv: ["sleep", "600"], parentId: parent.id });
  const result = await parent.cancel({ cascade: true });
  assert.equal(result.task?.id, parent.id);
  assert.equal((await child.snapshot()).state, TaskState.CANCELLED);
});

/** L4, L5 */
test("waits are for any, for all, for a session, or for a time", async () => {
  const quick = await client.spawn({ argv: ["true"], sessionId: "waits" });
  const slow = await client.spawn({ argv: ["sleep", "600"], sessionId: "waits" });
  const taskIds = [quick.id, slow.id];
  const any = await client.wait({ taskIds, count: 1 });
  assert(any.satisfied);
  assert.equal(any.met[0]?.id, quick.id);
  const all = await client.wait({ taskIds }, { timeoutMs: 20 });
  assert(!all.satisfied);
  assert.equal(all.pending[0]?.id, slow.id);
  assert.equal(await slow.waitFor(0), undefined);
  assert.equal((await slow.snapshot()).state, TaskState.RUNNING, "a wait ends no task");
  const session = client.wait({ sessionId: "waits" });
  await slow.cancel();
  assert((await session).satisfied);
});

/** T1 */
test("a task's own timeout ends it", async () => {
  const ended = await (await client.spawn({ argv: ["sleep", "600"], timeoutMs: 50 })).wait();
  assert.equal(ended.state, TaskState.TIMED_OUT);
  assert.equal(ended.endReason, EndReason.DEADLINE);
});

/** E1 */
test("a task's events are in order and end with it", async () => {
  const task = await client.spawn({ argv: ["true"] });
  const types = (await collect(task.events())).map(({ type }) => TaskEventType[type]);
  assert.equal(types[0], "CREATED");
  assert.equal(types[1], "STARTED");
  assert.equal(types.at(-1), "ENDED");
});

/** L1 */
test("list goes through every page", async () => {
  const filter = { sessionId: "pages" };
  const spawned: string[] = [];
  for (let i = 0; i < 5; i += 1) {
    spawned.push((await client.spawn({ argv: ["true"], ...filter })).id);
  }
  await client.wait({ taskIds: spawned });
  const listed = await collect(client.list({ filter, includeFinished: true, pageSize: 2 }));
  assert.deepEqual(
    listed.map(({ id }) => id),
    spawned.reverse(),
  );
  const page = await client.listPage({ filter, includeFinished: true, pageSize: 2 });
  assert.equal(page.tasks.length, 2);
  assert(page.nextPageToken);
  assert(page.server?.stateId);
});

/** L6 */
test("what is removed is gone", async () => {
  const [one, two] = [
    await client.spawn({ argv: ["true"], sessionId: "rm" }),
    await client.spawn({ argv: ["true"], sessionId: "rm" }),
  ];
  await client.wait({ taskIds: [one.id, two.id] });
  await one.remove();
  const { removedTaskIds } = await client.remove({ finished: { sessionId: "rm" } });
  assert.deepEqual(removedTaskIds, [two.id]);
  await assert.rejects(one.snapshot(), { reason: "TASK_NOT_FOUND" });
});
