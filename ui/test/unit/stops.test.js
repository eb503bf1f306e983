import assert from "node:assert/strict";
import test from "node:test";
import { CallError } from "../../page/connect/error.js";
import { Stops } from "../../page/live/stops.js";
import { Calls, NOT_SERVING, settled, until } from "./calls.js";
import { task } from "./made.js";

const stopping = (id) => task(id, { state: "TASK_STATE_STOPPING" });
const cancelled = (id) => task(id, { state: "TASK_STATE_CANCELLED" });

/** The end of a stop of a task that is live, or not any more. */
function awaited(isLive) {
  const client = new Calls();
  const live = new Map(isLive ? [["a", stopping("a")]] : []);
  const stops = new Stops(client, { live });
  const end = stops.end(stopping("a"));
  return { client, stops, end };
}

test("a stop ends with the event of its task, without a call", async () => {
  const { client, stops, end } = awaited(true);
  stops.apply({ type: "TASK_EVENT_TYPE_ENDED", task: cancelled("other") });
  stops.apply({ type: "TASK_EVENT_TYPE_STOPPING", task: stopping("a") });
  assert.equal(stops.isWaiting, true);
  stops.apply({ type: "TASK_EVENT_TYPE_ENDED", task: cancelled("a") });
  assert.deepEqual(await end, cancelled("a"));
  assert.deepEqual([stops.isWaiting, client.open.length], [false, 0]);
});

test("a stop ends with its survivors", async () => {
  const { stops, end } = awaited(true);
  const survivors = { processes: [{ pid: 7 }] };
  const named = { ...stopping("a"), stop: { proof: { survivors } } };
  stops.apply({ type: "TASK_EVENT_TYPE_KILL_OVERDUE", task: named });
  assert.deepEqual((await end).stop.proof.survivors, survivors);
});

test("an end whose event came before the answer, or was missed, is asked for", async () => {
  for (const isMissed of [false, true]) {
    const { client, stops, end } = awaited(isMissed);
    if (isMissed) stops.reset();
    await client.fail(NOT_SERVING);
    (await until(() => client.open[0])).answer({ task: cancelled("a") });
    assert.deepEqual(await end, cancelled("a"));
  }
});

test("a stop ends when its task is removed", async () => {
  const { client, end } = awaited(false);
  await settled();
  await client.fail(new CallError("not_found", "no such task"));
  assert.equal(await end, undefined);
});
