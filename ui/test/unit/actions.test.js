import assert from "node:assert/strict";
import test from "node:test";
import { allowed, again } from "../../page/view/task/actions.js";
import { timeline } from "../../page/view/task/timeline.js";
import { KEPT, remember } from "../../page/model/history.js";
import { happenedOf } from "../../page/model/tasks.js";
import { event, task } from "./made.js";

const app = { isReadOnly: false };
const command = { shell: { script: "true" } };

test("a task has the actions that it allows, and none at a read-only address", () => {
  const running = task("a", { placement: "PLACEMENT_FOREGROUND" }, command);
  assert.deepEqual(allowed(app, running), ["Cancel", "Force", "Detach", "Send", "Restart"]);
  assert.deepEqual(allowed(app, task("a", { state: "TASK_STATE_STOPPING" }, command)), [
    "Force",
    "Send",
    "Restart",
  ]);
  assert.deepEqual(allowed(app, task("a", { state: "TASK_STATE_FAILED" }, command)), [
    "Restart",
    "Remove",
  ]);
  assert.deepEqual(allowed(app, task("a", { state: "TASK_STATE_LOST" })), ["Remove"]);
  assert.deepEqual(allowed({ isReadOnly: true }, running), []);
});

test("a restart keeps the specification and names what it leaves out", () => {
  const spec = {
    ...command,
    parentId: "gone",
    foreground: {},
    environment: { variables: {}, remove: ["A"], variableNames: ["TOKEN"] },
  };
  const { spec: kept, left } = again(spec, () => false);
  assert.deepEqual(kept, {
    ...command,
    parentId: "",
    environment: { variables: {}, remove: ["A"] },
  });
  assert.equal(left.length, 3);
  assert.match(left[0] ?? "", /TOKEN/);
  assert.deepEqual(
    again({ ...command, parentId: "p" }, () => true),
    { spec: { ...command, parentId: "p" }, left: [] },
  );
});

const happened = (revision, type) =>
  happenedOf(event(revision, task("a"), `TASK_EVENT_TYPE_${type}`).event);

test("a timeline folds repeated progress, and is made from the task without its events", () => {
  const events = ["CREATED", "STARTED", "PROGRESS", "PROGRESS", "STALE"].map((type, at) =>
    happened(at, type),
  );
  const shown = timeline(task("a"), events).map((entry) => `${entry.text} ${entry.times}`);
  assert.deepEqual(shown, ["Created 1", "Started 1", "Progress 2", "Stale 1"]);
  const old = task("a", { startTime: "2026-01-01T00:00:01Z", endTime: "2026-01-01T00:00:02Z" });
  assert.deepEqual(
    timeline(old, []).map((entry) => entry.text),
    ["Created", "Started", "Ended"],
  );
});

test("the events of a task are bounded, and a day of progress is one of them", () => {
  const events = [];
  remember(events, happened(0, "CREATED"));
  for (let at = 1; at <= 86_400; at += 1) remember(events, happened(at, "PROGRESS"));
  assert.deepEqual(
    timeline(task("a"), events).map((entry) => `${entry.text} ${entry.times}`),
    ["Created 1", "Progress 86400"],
  );
  assert.equal(events.at(-1).revision, 86_400);
  for (let at = 0; at < 2 * KEPT; at += 1) remember(events, happened(at, "STALE"));
  assert.equal(events.length, KEPT);
});
