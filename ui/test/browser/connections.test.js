/** A browser has six connections for a server: the page leaves them to those who look at it. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { connected, newPage, openPage, startDaemon } from "./support/browser.js";
import { act, inState, openTask, output, state } from "./support/parts.js";
import { until } from "./support/until.js";
import { setHidden, startHidden } from "./support/visibility.js";

/** @typedef {import("./support/browser.js").Page} Page */

/** More tabs or stops than there are connections. */
const MANY = 7;

/** The streams of a page that go on: their methods. */
function streams(/** @type {Page} */ page) {
  /** @type {Map<import("playwright-core").Request, string>} */
  const open = new Map();
  page.on("request", (request) => {
    const method = /[^/]*$/.exec(request.url())?.[0] ?? "";
    if (["WatchEvents", "FollowOutput"].includes(method)) open.set(request, method);
  });
  for (const end of /** @type {const} */ (["requestfailed", "requestfinished"]))
    page.on(/** @type {"requestfailed"} */ (end), (request) => open.delete(request));
  return () => [...open.values()].sort();
}

/** H3 */
test("tabs that are opened in the background leave the connections to the tab in front", async (t) => {
  const daemon = await startDaemon(t);
  const { id } = await daemon.script('echo begin; read -r line; echo "got $line"; sleep 1000', {
    input: {},
  });
  const front = await newPage(t);
  await openPage(front, daemon);
  for (let tab = 0; tab < MANY; tab += 1) {
    const page = await front.context().newPage();
    await startHidden(page);
    const open = streams(page);
    const inspected = page.waitForResponse(/Inspect$/);
    await page.goto(`${daemon.origin}/#/task/${id}?token=${daemon.token}`);
    await inspected;
    assert.deepEqual(open(), []);
  }
  await openTask(front, id);
  await output(front).getByText("begin", { exact: true }).waitFor();
  const [, last] = front.context().pages();
  assert.ok(last);
  await setHidden(last, false);
  await connected(last);
  await daemon.call("WriteInput", { taskId: id, data: btoa("line\n") });
  for (const page of [front, last])
    await output(page).getByText("got line", { exact: true }).waitFor();
});

/** H3 */
test("a tab that was hidden for some seconds gives its streams back, and goes on where it was", async (t) => {
  const daemon = await startDaemon(t);
  const { id } = await daemon.script('while read -r line; do echo "got $line"; done', {
    input: {},
  });
  const page = await newPage(t);
  await startHidden(page);
  const open = streams(page);
  await page.goto(`${daemon.origin}/#/task/${id}?token=${daemon.token}`);
  await setHidden(page, false);
  await connected(page);
  const send = async (/** @type {string} */ text) =>
    void (await daemon.call("WriteInput", { taskId: id, data: btoa(`${text}\n`) }));
  await send("first");
  await output(page).getByText("got first", { exact: true }).waitFor();
  assert.deepEqual(open(), ["FollowOutput", "WatchEvents"]);
  await setHidden(page, true);
  await until("the streams are given back", () => open().length === 0);
  await send("second");
  await setHidden(page, false);
  await output(page).getByText("got second", { exact: true }).waitFor();
  await daemon.call("Cancel", { filter: { taskIds: [id] }, force: {} });
  await inState(state(page), "cancelled");
});

/** H3 */
test("stops that take long leave the connections to other calls, and their proof is shown", async (t) => {
  const daemon = await startDaemon(t);
  const page = await newPage(t);
  await openPage(page, daemon);
  const ids = [];
  for (let at = 0; at < MANY; at += 1) {
    const script = "trap '' TERM; echo ready; while :; do sleep 1000; done";
    const { id } = await daemon.script(script, { stop: { grace: "600s" } });
    ids.push(id);
  }
  for (const id of ids) {
    await openTask(page, id);
    await output(page).getByText("ready", { exact: true }).waitFor();
    await act(page, "Cancel", "Cancel task");
    await inState(state(page), "stopping");
  }
  await act(page, "Force", "Force stop");
  await inState(state(page), "cancelled");
  const stop = page.getByRole("region", { name: "Stop" });
  await stop.getByText("Proven empty").waitFor();
  await page
    .getByRole("status", { name: "Messages" })
    .getByText(/proven empty/)
    .first()
    .waitFor();
  await daemon.call("Cancel", { filter: { taskIds: ids }, force: {}, wait: true });
});
