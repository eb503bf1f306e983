import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import {
  CancelOutcome,
  EndReason,
  type HeelerClient,
  ProofMethod,
  TaskEventType,
  TaskKind,
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

/** S1 */
test("spawn returns while the command runs, and list shows it", async () => {
  const { task } = await client.spawnResponse({
    argv: ["sleep", "600"],
    sessionId: "spawn",
    name: "sleeper",
    kind: "agent",
    labels: { team: "red" },
    workingDirectory: "/",
    stop: { graceMs: 0 },
  });
  assert.equal(task?.state, TaskState.RUNNING);
  assert(task.revision > 0n);
  assert.equal(task.spec?.kind, TaskKind.AGENT);
  const filter = { sessionId: "spawn", labels: { team: "red" }, kinds: ["agent"] } as const;
  const [listed, ...more] = await collect(client.list({ filter }));
  assert.deepEqual(more, []);
  assert.equal(listed?.id, task.id);
  assert(listed.leader?.pid);
  assert.equal(listed.spec?.name, "sleeper");
  assert.deepEqual(await collect(client.list({ filter: { sessionId: "nobody" } })), []);
  await client.cancel({ sessionId: "spawn" });
});

test("a task has the requested environment and shell, and its exit code", async () => {
  const task = await client.spawn({
    shell: 'echo "$GREETING $0"; exit 3',
    shellProgram: "/bin/sh",
    environment: { variables: { GREETING: "hello" }, remove: ["HOME"] },
  });
  const ended = await task.wait();
  assert.equal(ended.state, TaskState.FAILED);
  assert.equal(ended.exitCode, 3);
  const lines = await collect(task.lines());
  assert.deepEqual(
    lines.map(({ text }) => text),
    ["hello sh"],
  );
});

/** S9 */
test("the same request id returns the same task", async () => {
  const options = { argv: ["true"], requestId: "once" };
  const [first, second] = await Promise.all([client.spawn(options), client.spawn(options)]);
  assert.equal(first.id, second.id);
});

/** C4, C14 */
test("cancel ends the whole tree and returns the proof", async () => {
  const task = await client.spawn({
    shell: "setsid sleep 600 & (sleep 600 &) ; trap '' TERM; while :; do sleep 1; done",
  });
  const before = await task.inspect();
  assert(before.processes.length > 0);
  const result = await task.cancel({
    graceful: { graceMs: 50 },
    reason: "not needed",
    actor: "test",
  });
  assert.equal(result.outcome, CancelOutcome.REQUESTED);
  assert.equal(result.task?.state, TaskState.CANCELLED);
  assert.equal(result.task.stop?.reason, "not needed");
  assert.equal(result.task.stop.actor?.name, "test");
  const proof = result.task.stop.proof?.result;
  assert(proof?.case === "proven");
  assert([ProofMethod.CGROUP_EMPTY, ProofMethod.NO_CHILDREN].includes(proof.value));
  assert.deepEqual((await task.inspect()).processes, []);

  const again = await client.cancelBackgroundTask(task.id, { force: true });
  assert.equal(again.outcome, CancelOutcome.ALREADY_FINISHED, "C9");
});

/** C12 */
test("a cascade reaches children, and the result is that of the task itself", async () => {
  const parent = await client.spawn({ argv: ["sleep", "600"] });
  const child = await client.spawn({ argv: ["sleep", "600"], parentId: parent.id });
  const result = await parent.cancel({ cascade: true });
  assert.equal(result.task?.id, parent.id);
  assert.equal((await child.get()).state, TaskState.CANCELLED);
});

/** L4, L5 */
test("a wait is for any task, for all, for a session, or for a time", async () => {
  const quick = await client.spawn({ argv: ["true"], sessionId: "waits" });
  const slow = await client.spawn({ argv: ["sleep", "600"], sessionId: "waits" });
  const taskIds = [quick.id, slow.id];
  const any = await client.wait({ taskIds }, { count: 1 });
  assert(any.satisfied);
  assert.equal(any.met[0]?.id, quick.id);
  const all = await client.wait({ taskIds }, { timeoutMs: 20 });
  assert(!all.satisfied);
  assert.equal(all.pending[0]?.id, slow.id);
  assert.equal(await slow.waitFor(0), undefined);
  assert.equal((await slow.get()).state, TaskState.RUNNING, "a wait ends no task");
  const session = client.wait({ sessionId: "waits" });
  await slow.cancel();
  assert((await session).satisfied);
});

/** T1 */
test("a task's own timeout ends it", async () => {
  const ended = await (await client.spawn({ argv: ["sleep", "600"], timeoutMs: 50 })).wait();
  assert.equal(ended.state, TaskState.TIMED_OUT);
  assert.equal(ended.endReason, EndReason.TIMEOUT);
});

/** E1 */
test("the events of a task are in order and stop at its end", async () => {
  const task = await client.spawn({ argv: ["true"] });
  const types = (await collect(task.events())).map(({ type }) => TaskEventType[type]);
  assert.equal(types[0], "CREATED");
  assert.equal(types[1], "STARTED");
  assert.equal(types.at(-1), "ENDED");
});

/** L1 */
test("list reads every page", async () => {
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
  assert(page.server?.epoch);
});

/** L6 */
test("a removed task is not found", async () => {
  const [one, two] = [
    await client.spawn({ argv: ["true"], sessionId: "rm" }),
    await client.spawn({ argv: ["true"], sessionId: "rm" }),
  ];
  await client.wait({ taskIds: [one.id, two.id] });
  await one.remove();
  const { removedTaskIds } = await client.remove({ sessionId: "rm" });
  assert.deepEqual(removedTaskIds, [two.id]);
  await assert.rejects(one.get(), { reason: "TASK_NOT_FOUND" });
});
