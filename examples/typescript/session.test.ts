import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import {
  AttachEndReason,
  CancelOutcome,
  type HeelerClient,
  type SessionCounts,
  TaskState,
} from "@heeler/client";

import { Daemon, until } from "./daemon.js";
import { AgentSession } from "./session.js";

let daemon: Daemon;
let client: HeelerClient;

before(async () => {
  daemon = await Daemon.start();
  ({ client } = daemon);
});

after(async () => {
  await daemon[Symbol.asyncDispose]();
});

/** A session, and the events that it emits. */
async function open(id: string): Promise<{ session: AgentSession; emitted: string[] }> {
  const session = await AgentSession.open(client, id);
  const emitted: string[] = [];
  session.on("backgroundTasksChanged", ({ agents, shells }: SessionCounts) => {
    emitted.push(`${agents.toString()} agents, ${shells.toString()} shells`);
  });
  session.on("idle", () => emitted.push("idle"));
  return { session, emitted };
}

/** Waits until the session counts this many live tasks. */
async function counted(session: AgentSession, agents: number, shells: number): Promise<void> {
  await until("the counts are right", () => {
    const counts = session.backgroundTasks;
    return (counts.agents === agents && counts.shells === shells) || undefined;
  });
}

/** Waits until the session has emitted idle this many times: its own stream may be a moment later. */
async function emittedIdle(emitted: readonly string[], times: number): Promise<void> {
  await until("it is idle", () => {
    return emitted.filter((line) => line === "idle").length >= times || undefined;
  });
}

test("counts change with each start and end, and idle comes when all are done", async () => {
  const { session, emitted } = await open("counts");
  await session.idle();
  const agent = await session.startAgent({ argv: ["sleep", "600"] });
  const shell = await session.startShell({ argv: ["sleep", "600"] });
  await counted(session, 1, 1);
  const idle = session.idle();
  await session.cancelBackgroundTask(shell);
  await session.cancelBackgroundTask(agent);
  await idle;
  await emittedIdle(emitted, 1);
  assert.deepEqual(emitted, [
    "1 agents, 0 shells",
    "1 agents, 1 shells",
    "1 agents, 0 shells",
    "0 agents, 0 shells",
    "idle",
  ]);
  await session.close();
});

test("a cancel ends the tree, returns its result, and leaves the session usable", async () => {
  const { session, emitted } = await open("cancel");
  const agentId = await session.startAgent({ shell: "setsid sleep 600 & sleep 600" });
  const result = await session.cancelBackgroundTask(agentId, "the user asked");
  assert.equal(result.outcome, CancelOutcome.REQUESTED);
  assert.equal(result.task?.state, TaskState.CANCELLED);
  assert.equal(result.task.stop?.reason, "the user asked");
  assert.equal(result.task.stop.proof?.result.case, "proven");
  await session.idle();

  const again = await session.cancelBackgroundTask(agentId);
  assert.equal(again.outcome, CancelOutcome.ALREADY_FINISHED);
  await assert.rejects(session.cancelBackgroundTask("agent-aaaaaaaaaa"), {
    reason: "TASK_NOT_FOUND",
  });
  await session.startShell({ shell: "exit 0" });
  await session.idle();
  await emittedIdle(emitted, 2);
  await session.close();
});

test("a session is not idle while a task that was just started runs", async () => {
  const { session } = await open("short");
  for (let i = 0; i < 20; i += 1) {
    const id = await session.startShell({ argv: ["true"] });
    await session.idle();
    assert.equal((await client.task(id).get()).state, TaskState.COMPLETED);
  }
  await assert.rejects(session.startShell({ argv: ["no-such-program"] }), {
    reason: "PROGRAM_UNUSABLE",
  });
  await session.idle();
  await session.close();
});

test("a shell in the foreground returns its output, or is moved to the background", async () => {
  const { session, emitted } = await open("foreground");
  const done = await session.runShell({ shell: "echo hello; exit 3" });
  assert.equal(done.stdout, "hello\n");
  assert.equal(done.exitCode, 3);
  await session.idle();
  await emittedIdle(emitted, 1);

  let moved: string[] = [];
  const server = await session.runShell({
    shell: "echo listening; exec sleep 600",
    onOutput: async () => {
      moved = await session.moveToBackground("the user pressed a key");
    },
  });
  assert.equal(server.reason, AttachEndReason.DETACHED);
  assert.deepEqual(moved, [server.task.id]);
  await counted(session, 0, 1);
  assert.equal(emitted.filter((line) => line === "idle").length, 1, "the task still runs");
  await session.cancelBackgroundTask(server.task.id);
  await session.idle();
  assert.deepEqual(await session.moveToBackground(), []);
  await session.close();
});

test("other sessions are not counted, and a second view has the same counts", async () => {
  const { session } = await open("one");
  const other = await open("other");
  const id = await session.startAgent({ argv: ["sleep", "600"] });
  const second = await open("one");
  assert.deepEqual(second.session.backgroundTasks, { agents: 1, shells: 0, hosted: 0 });
  assert.deepEqual(other.session.backgroundTasks, { agents: 0, shells: 0, hosted: 0 });
  await session.cancelBackgroundTask(id);
  await Promise.all([session.idle(), second.session.idle()]);
  assert.deepEqual(other.emitted, []);
  await Promise.all([session.close(), second.session.close(), other.session.close()]);
});

test("a session continues across a kill of the daemon", async () => {
  const { session, emitted } = await open("killed");
  const id = await session.startAgent({ argv: ["sleep", "600"] });
  await counted(session, 1, 0);
  await daemon.killAndRestart();
  assert.deepEqual(emitted, ["1 agents, 0 shells"]);
  await session.cancelBackgroundTask(id);
  await session.idle();
  await emittedIdle(emitted, 1);
  assert.deepEqual(emitted, ["1 agents, 0 shells", "0 agents, 0 shells", "idle"]);
  await session.close();
});
