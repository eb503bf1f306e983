/** Many tasks, many events, much output, and the size of the page. The figures are printed; their limits are wide. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { newPage, openPage, startDaemon } from "./support/browser.js";
import { measure, pace, words } from "./support/pace.js";
import { lines, openTask, openView, output, row } from "./support/parts.js";
import { until } from "./support/until.js";

/** @typedef {import("./support/browser.js").Page} Page */
/** @typedef {import("./support/daemon.js").Daemon} Daemon */

const TASKS = 5000;
/** Tasks with the same label, which one call cancels. */
const BATCH = 500;
/** The longest time for which the page may do nothing else, on a machine with other work. */
const BUSY_MS = 1500;
/** Sizes over the wire. */
const PAGE_BYTES = 150_000;
const LOG_BYTES = 100_000_000;

/**
 * Prints the pace since the last call, and fails if the page was busy for too long at a time.
 * @param {Page} page
 * @param {string} what
 */
async function report(page, what) {
  const measured = await pace(page);
  console.log(`${what}: ${words(measured)}`);
  assert.ok(measured.longestTask < BUSY_MS, `${what}: a task of ${measured.longestTask} ms`);
}

/** Spawns tasks that wait in a paused queue, in batches by label. */
async function queueTasks(/** @type {Daemon} */ daemon) {
  await daemon.call("UpdateQueue", { name: "paused", paused: true });
  let next = 0;
  const spawnAll = async () => {
    while (next < TASKS) {
      const at = next++;
      const labels = { batch: `${Math.floor(at / BATCH)}` };
      await daemon.script("true", {
        name: `task ${at}`,
        queue: "paused",
        sessionId: `s${at % 20}`,
        labels,
      });
    }
  };
  await Promise.all(Array.from({ length: 16 }, spawnAll));
}

/** The number of live tasks that the page shows. */
async function listed(/** @type {Page} */ page) {
  const text = await page.locator("main .list-count").textContent();
  return Number(text?.replaceAll(/\D/g, "") || 0);
}

/** H3 */
test("five thousand tasks are listed, and a thousand events a second are shown", async (t) => {
  const daemon = await startDaemon(t);
  const page = await newPage(t);
  await measure(page);
  await queueTasks(daemon);
  const begin = performance.now();
  await openPage(page, daemon);
  await until("all tasks are listed", async () => (await listed(page)) === TASKS);
  console.log(`${TASKS} tasks listed after ${Math.round(performance.now() - begin)} ms`);
  await report(page, `${TASKS} tasks, listing`);

  const grid = page.getByRole("treegrid", { name: "Live tasks" });
  await grid.focus();
  for (const key of ["G", "g"]) await page.keyboard.press(key);
  for (let presses = 0; presses < 40; presses += 1) await page.keyboard.press("PageDown");
  await report(page, `${TASKS} tasks, scrolling`);
  await page.keyboard.press("/");
  await page.keyboard.type("task 4711");
  await until("one task is left", async () => (await grid.locator("[data-task-id]").count()) === 1);
  await page.keyboard.press("Escape");
  await until("all are back", async () => (await listed(page)) === TASKS);
  await report(page, `${TASKS} tasks, filtering`);

  await cancelAll(daemon, page);
});

/**
 * Cancels the tasks batch by batch while the page shows the events: two for each task, as fast as the daemon ends them.
 * @param {Daemon} daemon
 * @param {Page} page
 */
async function cancelAll(daemon, page) {
  await openView(page, "Events");
  const newest = page.getByRole("table", { name: "Events" }).locator("[data-revision]").first();
  const shown = async () => Number((await newest.getAttribute("data-revision")) ?? 0);
  const begin = performance.now();
  const first = Number((await daemon.call("List", { pageSize: 1 })).revision);
  let last = first;
  let longestLag = 0;
  for (let batch = 0; batch < TASKS / BATCH; batch += 1) {
    const { revision } = await daemon.call("Cancel", {
      filter: { labels: { batch: `${batch}` } },
      force: {},
      wait: true,
    });
    last = Number(revision);
    const answered = performance.now();
    await until("the last event of the batch", async () => (await shown()) >= last);
    longestLag = Math.max(longestLag, performance.now() - answered);
  }
  const seconds = (performance.now() - begin) / 1000;
  const rate = Math.round((last - first) / seconds);
  console.log(
    `${last - first} events in ${seconds.toFixed(1)} s, ${rate} a second, shown at most ${Math.round(longestLag)} ms late`,
  );
  await report(page, "events");
  assert.ok(longestLag < 10_000, `the page is ${longestLag} ms behind`);
  await openView(page, "Live");
  await until("no task is listed", async () => (await listed(page)) === 0);
}

/** H3 */
test("a log of 100 MB is followed, scrolled and searched without a freeze", async (t) => {
  const daemon = await startDaemon(t, "--max-output", "1GiB");
  const page = await newPage(t);
  await measure(page);
  await openPage(page, daemon);
  const rest = "of a log: the quick brown fox jumps over the lazy dog, again and again";
  const line = (/** @type {number} */ number) => `line ${`${number}`.padStart(8, "0")} ${rest}`;
  const size = line(1).length + 1;
  const count = Math.ceil(LOG_BYTES / size);
  const script = `seq -f 'line %08.0f ${rest}' 1 ${count}; echo finally; sleep 1000`;
  const { id } = await daemon.script(script, { output: { maxBytes: "1000000000" } });
  const begin = performance.now();
  await openTask(page, id);
  await output(page).getByText("finally", { exact: true }).waitFor();
  const { endOffset } = await daemon.call("ReadOutput", { taskId: id, tailBytes: "1" });
  const bytes = Number(endOffset);
  assert.ok(bytes >= LOG_BYTES, `${bytes} bytes`);
  console.log(
    `${bytes / 1e6} MB followed to the end in ${Math.round(performance.now() - begin)} ms`,
  );
  await report(page, "100 MB, following");

  const log = output(page);
  await log.focus();
  for (let presses = 0; presses < 50; presses += 1) await page.keyboard.press("PageUp");
  await page.keyboard.press("Home");
  await until("the first line", async () => (await lines(page))[0]?.text === line(1));
  for (let presses = 0; presses < 50; presses += 1) await page.keyboard.press("PageDown");
  await report(page, "100 MB, scrolling");

  const wanted = Math.floor(count / 8);
  await page.getByRole("searchbox", { name: "Search output" }).fill(line(wanted));
  await page.keyboard.press("Enter");
  await until("the line that was searched for", async () =>
    (await lines(page)).some(({ offset }) => offset === (wanted - 1) * size),
  );
  await report(page, "100 MB, searching");

  const follow = page.getByRole("button", { name: "Follow" });
  if ((await follow.getAttribute("aria-pressed")) !== "true") await follow.click();
  await log.getByText("finally", { exact: true }).waitFor();
  await report(page, "100 MB, following again");
});

/** H3 */
test("the page is small and paints soon", async (t) => {
  const daemon = await startDaemon(t);
  const { id } = await daemon.script("sleep 1000");
  const page = await newPage(t);
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  /** @type {Map<string, "files" | "calls">} */
  const kinds = new Map();
  const bytes = { files: 0, calls: 0 };
  session.on("Network.requestWillBeSent", ({ requestId, request }) => {
    kinds.set(requestId, request.method === "GET" ? "files" : "calls");
  });
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    bytes[kinds.get(requestId) ?? "calls"] += encodedDataLength;
  });
  await openPage(page, daemon);
  await row(page, id).waitFor();
  await openTask(page, id);
  await output(page).waitFor();
  const paint = await until("the first paint", async () => {
    const entries = await page.evaluate(() =>
      performance.getEntriesByName("first-contentful-paint").map((entry) => entry.startTime),
    );
    return entries[0];
  });
  console.log(`over the wire: ${bytes.files} bytes of files, ${bytes.calls} of calls`);
  console.log(`first contentful paint after ${Math.round(paint)} ms`);
  assert.ok(bytes.files < PAGE_BYTES, `${bytes.files} bytes`);
  assert.ok(paint < 10_000, `${paint} ms`);
});
