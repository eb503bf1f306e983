/** The daemon is killed and comes back while the page is open. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { connected, newPage, openPage, startDaemon } from "./support/browser.js";
import { act, inState, lines, openTask, openView, output, row, state } from "./support/parts.js";
import { until } from "./support/until.js";

/** @typedef {import("./support/browser.js").Page} Page */

/** The calls and streams that break are failed requests for the browser. */
const BROKEN = /Failed to load resource: (net::ERR_|.*503)/;
const LINES = 400;

/**
 * All lines of the output, by scrolling from its first to its last line.
 * @param {Page} page
 */
async function allLines(page) {
  const log = output(page);
  await log.focus();
  await page.keyboard.press("Home");
  await until("the first line", async () => (await lines(page))[0]?.offset === 0);
  /** @type {Map<number, string | null>} */
  const seen = new Map();
  await until("the last line", async () => {
    for (const { offset, text } of await lines(page)) {
      assert.ok(!seen.has(offset) || seen.get(offset) === text, `two lines at ${offset}`);
      seen.set(offset, text);
    }
    await page.keyboard.press("PageDown");
    return [...seen.values()].some((text) => text?.includes("last"));
  });
  return [...seen.entries()].sort(([a], [b]) => a - b).map(([, text]) => text);
}

/** The revisions in the view of events, newest first. */
async function revisions(/** @type {Page} */ page) {
  const rows = page.getByRole("table", { name: "Events" }).locator("[data-revision]");
  return await rows.evaluateAll((all) =>
    all.map((row) => Number(row.getAttribute("data-revision"))),
  );
}

/** A message of a stream. */
function frame(/** @type {object} */ message, flags = 0) {
  const json = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt8(flags);
  head.writeUInt32BE(json.length, 1);
  return Buffer.concat([head, json]);
}

/** H4 */
test("a daemon that was killed is found again, with nothing lost and nothing repeated", async (t) => {
  const daemon = await startDaemon(t);
  const tabs = await Promise.all([1, 2, 3].map(() => newPage(t, { expected: BROKEN })));
  const [list, events, task] = /** @type {[Page, Page, Page]} */ (tabs);
  for (const page of tabs) await openPage(page, daemon);
  await openView(events, "Events");

  const go = join(daemon.dir, "go");
  const ends = await daemon.script(`until [ -e '${go}' ]; do sleep 0.05; done; exit 4`);
  const wait = `until [ -e '${go}' ]; do sleep 0.05; done`;
  const loop = `while [ $i -lt $1 ]; do echo "tick $i"; i=$((i+1)); done`;
  const script = `f() { ${loop}; }; i=0; f ${LINES / 2}; ${wait}; f ${LINES}; echo last; sleep 1000`;
  const ticks = await daemon.script(script);
  const lives = await daemon.script("sleep 1000");
  await openTask(task, ticks.id);
  await output(task)
    .getByText(`tick ${LINES / 2 - 1}`, { exact: true })
    .waitFor();
  await row(list, lives.id).waitFor();
  await row(list, ends.id).waitFor();

  await daemon.kill();
  for (const page of tabs) {
    const status = page.getByRole("status", { name: "Connection" });
    await status.filter({ hasText: /Reconnecting/ }).waitFor();
  }
  // Tasks go on without a daemon: one ends, one writes.
  writeFileSync(go, "");
  await daemon.start();
  for (const page of tabs) await connected(page);
  const after = await daemon.script("sleep 1000");

  await row(list, after.id).waitFor();
  await row(list, ends.id).waitFor({ state: "detached" });
  const ids = await list
    .locator("[role=row][data-task-id]")
    .evaluateAll((rows) => rows.map((row) => row.dataset["taskId"]));
  assert.deepEqual(ids.toSorted(), [after.id, lives.id, ticks.id].toSorted());

  const truth = (await daemon.events()).map((event) => Number(event.revision)).reverse();
  await until("the newest event", async () => (await revisions(events))[0] === truth[0]);
  assert.deepEqual(await revisions(events), truth);

  await output(task).getByText("last", { exact: true }).waitFor();
  const wanted = [...Array.from({ length: LINES }, (_, at) => `tick ${at}`), "last"];
  assert.deepEqual(await allLines(task), wanted);
  await inState(state(task), "running");
  await act(task, "Cancel", "Cancel task");
  await inState(state(task), "cancelled");
});

/** H4 */
test("lines that were sent while the daemon was away arrive once, also when their view was left", async (t) => {
  const daemon = await startDaemon(t);
  const { id } = await daemon.script('while read -r line; do echo "got $line"; done', {
    input: {},
  });
  const page = await newPage(t, { expected: BROKEN });
  await openPage(page, daemon);
  const send = async (/** @type {string} */ text) => {
    const field = page.getByRole("textbox", { name: "Input", exact: true });
    await until("the input is open", () => field.isEnabled());
    await field.fill(text);
    await page.getByRole("button", { name: "Send input" }).click();
  };
  await openTask(page, id);
  await send("first");
  await output(page).getByText("got first", { exact: true }).waitFor();
  await daemon.kill();
  await send("second");
  await send("third");
  await page
    .getByRole("status", { name: "State of the input" })
    .filter({ hasText: "13 B waiting" })
    .waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await page.getByRole("treegrid", { name: "Live tasks" }).waitFor();
  await daemon.start();
  await connected(page);
  await openTask(page, id);
  await send("fourth");
  await output(page).getByText("got fourth", { exact: true }).waitFor();
  const texts = (await lines(page)).map(({ text }) => text);
  assert.deepEqual(texts, ["got first", "got second", "got third", "got fourth"]);
});

/** H4 */
test("a task is shown as it is after the revisions have begun anew", async (t) => {
  const daemon = await startDaemon(t);
  const { id } = await daemon.script("exit 4");
  await until("the end", async () => (await daemon.task(id)).state === "TASK_STATE_FAILED");
  const page = await newPage(t, { expected: /Failed to load resource/ });
  let isOld = true;
  /** The task as of an epoch that is lost: it runs, and has changed often. */
  const before = async () => {
    const old = { ...(await daemon.task(id)), state: "TASK_STATE_RUNNING", revision: "1000" };
    return isOld ? old : undefined;
  };
  await page.route(/\/Inspect$/, async (route) => {
    const response = await route.fetch();
    const task = await before();
    const json = await response.json();
    await route.fulfill({ response, json: task ? { ...json, task } : json });
  });
  await page.route(/\/WatchEvents$/, async (route) => {
    const isFirst = isOld && (route.request().postData() ?? "").includes("initialState");
    if (isFirst) {
      const bookmark = { revision: "1000", epoch: "lost" };
      const end = { error: { code: "unavailable" } };
      const body = Buffer.concat([
        frame({ initial: await before() }),
        frame({ bookmark }),
        frame(end, 2),
      ]);
      await route.fulfill({ contentType: "application/connect+json", body });
    } else {
      if (isOld) await inState(state(page), "running");
      isOld = false;
      await route.continue();
    }
  });
  await page.goto(`${daemon.origin}/#/task/${id}?token=${daemon.token}`);
  await inState(state(page), "failed");
  assert.equal(isOld, false);
});
