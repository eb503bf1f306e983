import assert from "node:assert/strict";
import { test } from "node:test";

import { type Body, EndReason, TaskState } from "@heeler/client";

import { aborted, Daemon, until } from "./daemon.js";
import { Fleet } from "./fleet.js";

/** Works until it is told to stop, and returns what it has by then. */
function drafting(name: string, running: Set<string>): Body {
  return async (work) => {
    running.add(name);
    await work.report({ intent: `writes ${name}`, percent: 10 });
    await aborted(work.stopping);
    running.delete(name);
    return { status: "cancelled", text: `half of ${name}` };
  };
}

/** X1, P7 */
test("new work for a member replaces its present work, which keeps its partial result", async () => {
  await using daemon = await Daemon.start();
  const fleet = new Fleet(daemon.client, "docs");
  const running = new Set<string>();
  const first = fleet.assign("ada", drafting("draft 1", running));
  const other = fleet.assign("bob", drafting("tests", running));
  await until("both work", () => running.size === 2 || undefined);
  await daemon.killAndRestart();
  const second = fleet.assign("ada", drafting("draft 2", running));
  const replaced = await first;
  assert.equal(replaced.endReason, EndReason.REPLACED);
  assert.equal(replaced.result?.text, "half of draft 1");
  await until("the next draft", () => running.has("draft 2") || undefined);
  assert.deepEqual(running, new Set(["tests", "draft 2"]));
  const members = await until("both have reported", async () => {
    const found = await fleet.members();
    return found.every(({ intent }) => intent !== "") && found.length === 2 ? found : undefined;
  });
  assert.deepEqual(
    members.map(({ name, intent, percent, isStale }) => [name, intent, percent, isStale]),
    [
      ["ada", "writes draft 2", 10, false],
      ["bob", "writes tests", 10, false],
    ],
  );
  const stopped = await fleet.disband("the release is out");
  assert.equal(stopped.length, 2);
  assert.equal((await second).stop?.reason, "the release is out");
  assert.equal((await other).result?.text, "half of tests");
  assert.deepEqual(await fleet.members(), []);
});

/** X2 */
test("two managers that assign at once leave one task, and never run two", async () => {
  await using daemon = await Daemon.start();
  const running = new Set<string>();
  let most = 0;
  const body =
    (name: string): Body =>
    async (work) => {
      running.add(name);
      most = Math.max(most, running.size);
      await aborted(work.stopping);
      running.delete(name);
    };
  const managers = [1, 2, 3, 4].map(() => new Fleet(daemon.client, "docs"));
  const assigned = managers.map(async (fleet, at) => {
    return await fleet.assign("ada", body(at.toString()));
  });
  const [fleet] = managers;
  assert(fleet !== undefined);
  let ended = 0;
  for (const task of assigned) {
    void task.then(() => (ended += 1));
  }
  await until("one is left", () => (ended === 3 && running.size === 1) || undefined);
  assert.equal(most, 1);
  await fleet.disband("enough");
  const states = (await Promise.all(assigned)).map(({ state }) => state);
  assert.deepEqual(new Set(states), new Set([TaskState.CANCELLED]));
});

/** P8 */
test("a member hears what it is told", async () => {
  await using daemon = await Daemon.start();
  const fleet = new Fleet(daemon.client, "docs");
  await assert.rejects(fleet.tell("ada", "hello"), /ada has no work/u);
  const heard = fleet.assign("ada", async (work) => {
    const { value } = await work.messages().next();
    return `${value?.sender?.name ?? ""}: ${value?.text ?? ""}`;
  });
  await until("she works", async () => ((await fleet.members()).length === 1 ? true : undefined));
  await fleet.tell("ada", "shorter, please");
  assert.equal((await heard).result?.text, "fleet docs: shorter, please");
});
