import assert from "node:assert/strict";
import test from "node:test";
import { fragment, parse } from "../../page/model/route.js";
import { keyText } from "../../page/output/keys.js";
import { line, lines } from "../../page/text/plain.js";
import { command, ending, endingBesideState, flags, title } from "../../page/text/task.js";
import { age, counted, duration, size } from "../../page/text/units.js";
import { task } from "./made.js";

test("an address has a view and may bring a token", () => {
  const cases = [
    ["#token=abc", "live", "", "abc"],
    ["", "live", "", ""],
    ["#/", "live", "", ""],
    ["#/queues?token=t-1_x", "queues", "", "t-1_x"],
    ["#/task/shell-abc", "task", "shell-abc", ""],
    ["#/task/", "live", "", ""],
    ["#/unknown", "live", "", ""],
    ["#/task/%E0%A4%A?token=t", "task", "%E0%A4%A", "t"],
  ];
  for (const [hash, view, id, token] of cases)
    assert.deepEqual(parse(hash), { route: { view, id }, token }, hash);
  assert.equal(parse(fragment("task", "a/b?c")).route.id, "a/b?c");
});

test("sizes, durations and ages are short", () => {
  assert.deepEqual([0, 1023, 1024, 12_582_912, 104_857_600].map(size), [
    "0 B",
    "1023 B",
    "1.0 KiB",
    "12.0 MiB",
    "100 MiB",
  ]);
  assert.deepEqual([0.25, 1.24, 59.9, 61, 3600, 90_000].map(duration), [
    "250ms",
    "1.2s",
    "59s",
    "1m 1s",
    "1h 0m",
    "1d 1h",
  ]);
  assert.deepEqual([-5, 999, 59_999, 60_000].map(age), ["0s", "0s", "59s", "1m 0s"]);
  assert.deepEqual([counted(1, "task"), counted(1200, "task")], ["1 task", "1,200 tasks"]);
  assert.equal(counted(2, "process", "processes"), "2 processes");
});

test("control characters and changes of direction do not reach the page", () => {
  assert.equal(line("a\u202eb\u0000c\n  d"), "a·b·c d");
  assert.equal(lines("a\r\nb\tc\u001b[31m"), "a\nb\tc·[31m");
});

test("a task has a title, a command and an end in words", () => {
  assert.equal(
    command(task("a", {}, { argv: { args: ["git", "commit", "-m", "it's done"] } })),
    "git commit -m 'it'\\''s done'",
  );
  assert.equal(title(task("a", {}, { shell: { script: "make\n  test" } })), "make test");
  assert.equal(title(task("a", {}, { kind: "TASK_KIND_HOSTED" })), "hosted task");
  const outcome = { signal: { number: 15, name: "SIGTERM", coreDumped: false } };
  assert.equal(
    ending(task("a", { outcome, endReason: "END_REASON_IDLE_TIMEOUT" })),
    "idle timeout, SIGTERM",
  );
  assert.equal(
    ending(task("a", { outcome: { exitCode: 2 }, endReason: "END_REASON_EXITED" })),
    "exit 2",
  );
});

test("the end beside a state does not repeat it", () => {
  const outcome = { signal: { number: 15, name: "SIGTERM", coreDumped: false } };
  const state = "TASK_STATE_CANCELLED";
  const cancelled = task("a", { state, outcome, endReason: "END_REASON_CANCELLED" });
  assert.equal(ending(cancelled), "cancelled, SIGTERM");
  assert.equal(endingBesideState(cancelled), "SIGTERM");
  const silent = task("a", { state, outcome, endReason: "END_REASON_IDLE_TIMEOUT" });
  assert.equal(endingBesideState(silent), "idle timeout, SIGTERM");
});

test("a finished task has no conditions", () => {
  const fields = { stale: true, needsInput: true, readiness: "READINESS_PENDING" };
  assert.deepEqual(
    flags(task("a", fields)).map((flag) => flag.key),
    ["input", "stale", "pending"],
  );
  assert.deepEqual(flags(task("a", { ...fields, state: "TASK_STATE_FAILED" })), []);
});

const key = (name, held = {}) =>
  keyText({ key: name, ctrlKey: false, altKey: false, shiftKey: false, metaKey: false, ...held });

test("keys are the bytes that a terminal sends", () => {
  assert.deepEqual(
    [
      key("Enter"),
      key("ArrowUp"),
      key("c", { ctrlKey: true }),
      key("b", { altKey: true }),
      key("Backspace"),
    ],
    ["\r", "\x1b[A", "\x03", "\x1bb", "\x7f"],
  );
  // Characters come as text, and the browser keeps these.
  assert.deepEqual(
    [key("a"), key("v", { metaKey: true }), key("Tab", { shiftKey: true }), key("F5")],
    ["", "", "", ""],
  );
});
