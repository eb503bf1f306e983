import assert from "node:assert/strict";
import test from "node:test";
import { Finished } from "../../page/model/finished.js";
import { Latest } from "../../page/model/latest.js";
import { matcher } from "../../page/model/filter.js";
import { Tasks } from "../../page/model/tasks.js";
import { arrange } from "../../page/model/tree.js";
import { bookmark, ended, event, initial, task } from "./made.js";

/** @param {Tasks} tasks */
const ids = (tasks) => [...tasks.live.keys()];

test("the initial state replaces the tasks when it is complete, not before", () => {
  const tasks = new Tasks();
  assert.deepEqual(tasks.request(), { bookmarkInterval: "5s", initialState: true });
  for (const message of [initial(task("a")), initial(task("b")), bookmark(10)])
    tasks.apply(message);
  assert.deepEqual(ids(tasks), ["a", "b"]);
  tasks.restart();
  tasks.request();
  tasks.apply(initial(task("c")));
  assert.deepEqual(ids(tasks), ["a", "b"]);
  tasks.apply(bookmark(3, "other"));
  assert.deepEqual(ids(tasks), ["c"]);
});

/** H4 */
test("a stream that resumes loses and repeats no event", () => {
  const tasks = new Tasks();
  tasks.request();
  tasks.apply(bookmark(10));
  tasks.apply(event(11, task("a")));
  tasks.apply(event(12, task("b")));
  assert.deepEqual(tasks.request(), { bookmarkInterval: "5s", afterRevision: "12", epoch: "e" });
  assert.equal(tasks.apply(event(12, task("b"))), undefined);
  assert.equal(tasks.apply(event(13, ended("a")))?.revision, 13);
  assert.deepEqual(
    tasks.events.map((one) => one.revision),
    [11, 12, 13],
  );
  assert.deepEqual(ids(tasks), ["b"]);
});

test("the events of another epoch are forgotten", () => {
  const tasks = new Tasks();
  tasks.request();
  tasks.apply(bookmark(10));
  tasks.apply(event(11, task("a")));
  tasks.restart();
  assert.deepEqual(tasks.request(), { bookmarkInterval: "5s", initialState: true });
  tasks.apply(bookmark(2, "other"));
  assert.equal(tasks.starts, 2);
  tasks.apply(event(3, task("b")));
  assert.deepEqual(
    tasks.events.map((one) => one.revision),
    [3],
  );
});

test("events from before the stream come before its own, each once", () => {
  const tasks = new Tasks();
  tasks.request();
  tasks.apply(bookmark(10));
  tasks.apply(event(11, task("a")));
  const earlier = new Tasks();
  earlier.request();
  earlier.apply(bookmark(8));
  for (const revision of [9, 10, 11]) earlier.apply(event(revision, task("a")));
  tasks.addEarlier(earlier.events);
  assert.deepEqual(
    tasks.events.map((one) => one.revision),
    [9, 10, 11],
  );
});

test("the events that are kept are bounded", () => {
  const tasks = new Tasks();
  tasks.request();
  tasks.apply(bookmark(0));
  for (let revision = 1; revision <= 10_000; revision += 1) tasks.apply(event(revision, task("a")));
  assert.ok(tasks.events.length <= 3_000, `${tasks.events.length}`);
  assert.equal(tasks.events.at(-1)?.revision, 10_000);
});

test("a change of a task does not change the order, its end does", () => {
  const tasks = new Tasks();
  tasks.request();
  tasks.apply(bookmark(0));
  tasks.apply(event(1, task("a")));
  const before = tasks.version;
  tasks.apply(event(2, task("a", { stale: true })));
  assert.equal(tasks.version, before);
  tasks.apply(event(3, ended("a")));
  assert.notEqual(tasks.version, before);
});

test("the place in a queue counts the tasks of it that were created before", () => {
  const tasks = new Tasks();
  tasks.request();
  const queued = (id, second, queue = "q") =>
    task(id, { state: "TASK_STATE_QUEUED", createTime: `2026-01-01T00:00:0${second}Z` }, { queue });
  for (const one of [
    queued("b", 2),
    queued("a", 1),
    queued("x", 0, "other"),
    task("r", {}, { queue: "q" }),
  ]) {
    tasks.apply(initial(one));
  }
  tasks.apply(bookmark(1));
  const place = (id) => tasks.queuePosition(tasks.live.get(id));
  assert.deepEqual(["a", "b", "x", "r"].map(place), [1, 2, 1, 0]);
});

test("the list shows sessions, and in each the tree of parents", () => {
  const at = (second) => ({ createTime: `2026-01-01T00:00:0${second}Z` });
  const rows = arrange(
    [
      task("alone", at(0)),
      task("parent", at(1), { sessionId: "s" }),
      task("other", at(2), { sessionId: "s" }),
      task("child", at(3), { sessionId: "s", parentId: "parent" }),
      task("grandchild", at(4), { sessionId: "s", parentId: "child" }),
      task("orphan", at(5), { sessionId: "s", parentId: "gone" }),
    ],
    "session",
  );
  const shown = rows.map((row) =>
    row.kind === "session" ? `[${row.session}] ${row.count}` : `${row.level} ${row.key}`,
  );
  assert.deepEqual(shown, [
    "[s] 5",
    "2 parent",
    "3 child",
    "4 grandchild",
    "2 other",
    "2 orphan",
    "[] 1",
    "2 alone",
  ]);
});

test("finished tasks are in the order of their ends", () => {
  const at = (from, to) => ({
    createTime: `2026-01-01T00:00:0${from}Z`,
    endTime: `2026-01-01T00:00:0${to}Z`,
  });
  const tasks = [task("long", at(1, 9)), task("short", at(2, 3)), task("middle", at(4, 5))];
  const order = (sort) => arrange(tasks, sort).map((row) => row.key);
  assert.deepEqual(order("last-ended"), ["long", "middle", "short"]);
  assert.deepEqual(order("first-ended"), ["short", "middle", "long"]);
});

test("tasks that name one another as parents are left out of no flat list, and do not hang the tree", () => {
  const circle = [
    task("a", {}, { parentId: "b" }),
    task("b", {}, { parentId: "a" }),
    task("c", {}, { parentId: "c" }),
  ];
  assert.equal(arrange(circle, "newest").length, 3);
  assert.deepEqual(
    arrange(circle, "session").map((row) => row.key),
    ["c"],
  );
});

test("a filter finds every word in any column", () => {
  const one = task(
    "shell-abc",
    { stale: true },
    { name: "Dev Server", sessionId: "web", labels: { team: "ui" } },
  );
  for (const query of ["dev", "WEB stale", "team=ui", "shell-ab running", ""])
    assert.ok(matcher(query)(one), query);
  assert.equal(matcher("dev failed")(one), false);
});

test("finished tasks follow the stream once they were listed", () => {
  const finished = new Finished();
  finished.add({ tasks: [ended("a")], nextPageToken: "", revision: "1" }, finished.read());
  finished.apply({ type: "TASK_EVENT_TYPE_ENDED", task: ended("b") });
  finished.apply({ type: "TASK_EVENT_TYPE_STARTED", task: task("c") });
  finished.apply({ type: "TASK_EVENT_TYPE_REMOVED", task: ended("a") });
  assert.deepEqual([...finished.tasks.keys()], ["b"]);
  assert.equal(finished.isComplete, true);
});

const page = (ids, nextPageToken = "") => ({ tasks: ids.map(ended), nextPageToken });
const isEnded = (id) => ({ type: "TASK_EVENT_TYPE_ENDED", task: ended(id) });
const isRemoved = (id) => ({ type: "TASK_EVENT_TYPE_REMOVED", task: ended(id) });

test("ends and removals while a page of finished tasks is read are in the list", () => {
  const finished = new Finished();
  const read = finished.read();
  finished.apply(isEnded("new"));
  finished.apply(isRemoved("gone"));
  finished.add(page(["old", "gone"]), read);
  assert.deepEqual([...finished.tasks.keys()], ["new", "old"]);
});

test("a list of finished tasks that was begun anew is read from its first page on", () => {
  const finished = new Finished();
  finished.add(page(["a"], "second"), finished.read());
  const read = finished.read();
  assert.equal(read.token, "second");
  finished.reset();
  finished.add(page(["b"]), read);
  assert.deepEqual([finished.tasks.size, finished.isComplete], [0, false]);
  assert.equal(finished.read().token, "");
});

test("a list of finished tasks is not complete before its last page", () => {
  const finished = new Finished();
  assert.deepEqual([finished.isComplete, finished.isOver], [false, false]);
  finished.add(page(["a"], "second"), finished.read());
  finished.failure = "refused";
  assert.deepEqual([finished.isComplete, finished.isOver], [false, true]);
});

test("the latest version of a task wins, and after a new start of the revisions the next one", () => {
  const latest = new Latest();
  const version = (revision) => task("a", { revision: String(revision) });
  for (const revision of [5, 7, 6]) latest.offer(version(revision));
  assert.equal(latest.task.revision, "7");
  latest.reset();
  assert.equal(latest.task.revision, "7");
  latest.offer(version(2));
  latest.offer(version(1));
  assert.equal(latest.task.revision, "2");
});
