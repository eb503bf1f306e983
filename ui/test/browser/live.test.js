/** Tasks that start, write and end while the page is open. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";

import { newPage, openPage, startDaemon } from "./support/browser.js";
import { act, inState, lines, openTask, openView, output, row, state } from "./support/parts.js";
import { until } from "./support/until.js";

/** The number of the last line that the page shows. */
const last = async (/** @type {import("./support/browser.js").Page} */ page) =>
  Number(/\d+/.exec((await lines(page)).at(-1)?.text ?? "")?.[0] ?? -1);

/** H3 */
test("a task appears, its output scrolls live, and a cancel shows the proof", async (t) => {
  const daemon = await startDaemon(t);
  const page = await newPage(t);
  await openPage(page, daemon);
  await page.evaluate(() => Object.assign(globalThis, { isSameDocument: true }));

  const script = 'i=0; while :; do echo "line $i"; i=$((i+1)); sleep 0.02; done';
  const { id } = await daemon.script(script, { name: "elsewhere", sessionId: "demo" });
  await row(page, id).filter({ hasText: "elsewhere" }).waitFor();
  await inState(row(page, id), "running");
  await row(page, id).click();
  await inState(state(page), "running");
  await until("more lines than fit", async () => (await last(page)) > 100);
  const before = await last(page);
  await until("further lines", async () => (await last(page)) > before + 20);
  const below = await output(page).evaluate(
    (log) => log.scrollHeight - log.scrollTop - log.clientHeight,
  );
  assert.ok(below < 100, `the end of the output is ${below} pixels below what is shown`);

  const leader = (await daemon.task(id)).leader?.pid;
  await act(page, "Cancel", "Cancel task");
  await inState(state(page), "cancelled");
  await page.getByRole("region", { name: "Stop" }).getByText("Proven empty").waitFor();
  assert.equal((await daemon.task(id)).state, "TASK_STATE_CANCELLED");
  assert.ok(!existsSync(`/proc/${leader}`), `process ${leader} is there`);

  await openView(page, "Live");
  await row(page, id).waitFor({ state: "detached" });
  await openView(page, "Finished");
  await inState(row(page, id), "cancelled");
  assert.ok(await page.evaluate(() => "isSameDocument" in globalThis), "the page was reloaded");
});

/** H3 */
test("both streams, colours and the end of a task are shown", async (t) => {
  const daemon = await startDaemon(t);
  const page = await newPage(t);
  await openPage(page, daemon);
  const { id } = await daemon.script("printf '\\033[31mred\\033[0m\\n'; echo bad >&2; exit 3");
  await until("the end", async () => (await daemon.task(id)).state === "TASK_STATE_FAILED");
  await page.goto(`${daemon.origin}/#/task/${id}`);
  await inState(state(page), "failed");
  const bad = output(page).locator('[data-offset][data-stream="stderr"]');
  await bad.filter({ hasText: /^bad$/ }).waitFor();
  const red = output(page).getByText("red", { exact: true });
  const plain = await bad.evaluate((line) => getComputedStyle(line).color);
  assert.notEqual(await red.last().evaluate((line) => getComputedStyle(line).color), plain);
  await page
    .getByText(/exit(ed)?( code| with)? 3/i)
    .first()
    .waitFor();
});

/** H3 */
test("the use of CPU is a share of time from the second reading on, and never a lone number", async (t) => {
  const daemon = await startDaemon(t);
  const { id } = await daemon.script("while :; do :; done");
  const page = await newPage(t);
  await openPage(page, daemon);
  await openTask(page, id);
  const resources = page.getByRole("region", { name: "Resources" });
  await resources.waitFor();
  assert.match((await resources.textContent()) ?? "", /CPU(–|[\d.]+%)[\d.ms ]+ used/);
  await resources.getByText(/^[\d.]+%$/).waitFor();
});

/** H3 */
test("finished tasks are listed after a call that failed, with those that ended meanwhile", async (t) => {
  const daemon = await startDaemon(t);
  const first = await daemon.script("true");
  await until(
    "the end",
    async () => (await daemon.task(first.id)).state === "TASK_STATE_COMPLETED",
  );
  const page = await newPage(t, { expected: /Failed to load resource.*503/ });
  await openPage(page, daemon);
  let calls = 0;
  await page.route(/\/List$/, async (route) => {
    if (!route.request().postData()?.includes("includeFinishedForeground")) {
      await route.continue();
      return;
    }
    calls += 1;
    if (calls === 1) {
      await route.fulfill({ status: 503, json: { code: "unavailable" } });
      return;
    }
    const response = await route.fetch();
    await daemon.script("true", { name: "meanwhile" });
    await until("the end", async () => (await daemon.liveIds()).length === 0);
    // Its event comes after that of the end.
    await daemon.script("sleep 1000");
    await page.locator("nav .nav-count").filter({ hasText: "1" }).waitFor();
    await route.fulfill({ response });
  });
  await openView(page, "Finished");
  await row(page, first.id).waitFor();
  await page.getByRole("row").filter({ hasText: "meanwhile" }).waitFor();
  assert.equal(await page.locator("main .list-count").textContent(), "2 tasks");
  assert.equal(calls, 2);
});
