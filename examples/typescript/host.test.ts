import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as rest } from "node:timers/promises";

import { TaskState, type Work } from "@heeler/client";

import { aborted, Daemon, until } from "./daemon.js";
import { AgentHost } from "./host.js";

const OPTIONS = { staleAfterMs: 2000, stop: { softGraceMs: 100, graceMs: 100 } };

/** Reports until it is told to stop. */
async function busy(work: Work): Promise<string> {
  while (!work.stopping.aborted) {
    await work.progress.note("still here");
    await rest(20);
  }
  return "stopped";
}

/** E9, R1 */
test("a turn ends when the background is quiet, and not before", async () => {
  await using daemon = await Daemon.start();
  const host = new AgentHost(daemon.client, "s", { staleAfterMs: 60_000 });
  assert.deepEqual(await host.endTurn(), [], "nothing runs");
  let canEnd = false;
  const id = await host.startSubagent("reviewer", async () => {
    await until("it may end", () => canEnd || undefined);
    return "two findings";
  });
  const shell = await host.session.spawn({ argv: ["sleep", "600"] });
  let isOver = false;
  const turn = host.endTurn().then((zombies) => {
    isOver = true;
    return zombies;
  });
  await daemon.killAndRestart();
  await shell.cancel();
  assert.equal((await daemon.client.task(id).get()).state, TaskState.RUNNING);
  assert.equal(isOver, false);
  canEnd = true;
  assert.deepEqual(await turn, []);
  assert.equal((await daemon.client.task(id).get()).result?.text, "two findings");
});

/** T5, P4, E9 */
test("a zombie is found and cancelled, and the session lives on", async () => {
  await using daemon = await Daemon.start();
  const host = new AgentHost(daemon.client, "s", OPTIONS);
  let canEnd = false;
  const worker = await host.startSubagent("worker", async (work) => {
    while (!canEnd) {
      await work.progress.note("still here");
      await rest(20);
    }
    return "done";
  });
  const obedient = await host.startSubagent("waits for an answer", async ({ stopping }) => {
    await aborted(stopping);
    return { status: "cancelled", text: "no answer came" };
  });
  const dead = await host.startSubagent("ignores everything", async () => {
    await new Promise(() => undefined);
  });
  const shell = await host.session.spawn({ argv: ["sleep", "600"], name: "dev server" });
  const turn = host.endTurn();
  for (const id of [obedient, dead]) {
    await daemon.client.task(id).wait();
  }
  assert.deepEqual(await host.session.counts(), { agents: 0, shells: 1, hosted: 1 });
  canEnd = true;
  await shell.cancel();
  const zombies = await turn;
  assert.deepEqual(new Set(zombies.map(({ id }) => id)), new Set([obedient, dead]));
  for (const { id, state, stop, result } of zombies) {
    assert.equal(state, TaskState.CANCELLED);
    assert.equal(stop?.reason, "silent for 2000 ms");
    assert.equal(stop.forced, id === dead);
    assert.equal(result?.text, id === dead ? undefined : "no answer came");
  }
  assert.equal((await daemon.client.task(worker).get()).result?.text, "done");

  const next = await host.startSubagent("next turn", () => "as ever");
  assert.deepEqual(await host.endTurn(), []);
  assert.equal((await daemon.client.task(next).get()).result?.text, "as ever");
});

/** L8 */
test("a subagent that was silent before the end of the turn is a zombie as well", async () => {
  await using daemon = await Daemon.start();
  const host = new AgentHost(daemon.client, "s", OPTIONS);
  const id = await host.startSubagent("silent", async ({ signal }) => {
    await aborted(signal);
  });
  await until("it is stale", async () => (await daemon.client.task(id).get()).stale || undefined);
  const [zombie] = await host.endTurn();
  assert.equal(zombie?.id, id);
});

test("a subagent that is refused, or stopped before it begins, has not started", async () => {
  await using daemon = await Daemon.start();
  const bad = new AgentHost(daemon.client, "s", { staleAfterMs: -1 });
  await assert.rejects(bad.startSubagent("refused", busy), { reason: "INVALID_FIELD" });

  const host = new AgentHost(daemon.client, "s", OPTIONS);
  const session = daemon.client.session("s");
  host.session.host = async (options, body) => {
    const exclusive = { key: "one at a time", mode: "queue" } as const;
    return await session.host({ ...options, exclusive }, body);
  };
  const first = await host.startSubagent("first", busy);
  const second = host.startSubagent("second", busy);
  const refused = assert.rejects(second, /second has not begun: its task is CANCELLED/u);
  const waiting = await until("it waits for the first one", async () => {
    const { tasks } = await daemon.client.listPage({ filter: { states: ["queued"] } });
    return tasks[0];
  });
  await daemon.client.task(waiting.id).cancel();
  await refused;
  await daemon.client.task(first).cancel();
});

test("a subagent that fails, or an aborted turn, costs nothing else", async () => {
  await using daemon = await Daemon.start();
  const host = new AgentHost(daemon.client, "s", { staleAfterMs: 60_000 });
  const failed = await host.startSubagent("failing", () => {
    throw new Error("no model");
  });
  assert.deepEqual(await host.endTurn(), []);
  assert.equal((await daemon.client.task(failed).get()).state, TaskState.FAILED);
  const id = await host.startSubagent("busy", busy);
  await assert.rejects(host.endTurn(AbortSignal.timeout(50)), { name: "TimeoutError" });
  assert.equal((await daemon.client.task(id).get()).state, TaskState.RUNNING);
  const [stopped] = await host.session.cancel();
  assert.equal(stopped?.task?.result?.text, "stopped");
});
