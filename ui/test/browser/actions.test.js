/** Calls that the page makes for a person: input, restart, remove, queues. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { newPage, openPage, startDaemon } from "./support/browser.js";
import { act, inState, openTask, openView, output, row, state } from "./support/parts.js";
import { until } from "./support/until.js";

/** H3 */
test("input is sent and closed, and the answer of the task is shown", async (t) => {
  const daemon = await startDaemon(t);
  const { id } = await daemon.script('while read -r line; do echo "got $line"; done; echo over', {
    input: {},
  });
  const page = await newPage(t);
  await openPage(page, daemon);
  await openTask(page, id);
  for (const text of ["first", "<b>second</b>"]) {
    await page.getByRole("textbox", { name: "Input", exact: true }).fill(text);
    await page.getByRole("button", { name: "Send input" }).click();
    await output(page).getByText(`got ${text}`, { exact: true }).waitFor();
  }
  await page.getByRole("button", { name: "Close input" }).click();
  await output(page).getByText("over", { exact: true }).waitFor();
  await inState(state(page), "completed");
});

/** H3 */
test("a finished task is started again and removed", async (t) => {
  const daemon = await startDaemon(t);
  const { id } = await daemon.script("echo once more; exit 2", { name: "again" });
  await until("the end", async () => (await daemon.task(id)).state === "TASK_STATE_FAILED");
  const page = await newPage(t);
  await openPage(page, daemon);
  await openTask(page, id);
  await act(page, "Restart", "Restart task");
  await until("the page of the new task", () => !page.url().endsWith(id));
  await inState(state(page), "failed");
  await output(page).getByText("once more").waitFor();
  await act(page, "Remove", "Remove task");
  await until("one task is left", async () => {
    const { tasks } = await daemon.call("List", { includeFinished: true });
    return tasks.length === 1 && tasks[0].id === id;
  });
  await openView(page, "Finished");
  await row(page, id).waitFor();
  assert.equal(await page.locator("[role=row][data-task-id]").count(), 1);
});

/** H3 */
test("a queue is paused, resumed and given slots", async (t) => {
  const daemon = await startDaemon(t);
  await daemon.call("UpdateQueue", { name: "build", paused: true });
  const first = await daemon.script("sleep 1000", { queue: "build" });
  const second = await daemon.script("sleep 1000", { queue: "build" });
  const page = await newPage(t);
  await openPage(page, daemon);
  await openView(page, "Queues");
  await page.getByRole("button", { name: "Resume build" }).click();
  await until(
    "the first task runs",
    async () => (await daemon.task(first.id)).leader !== undefined,
  );
  const slots = page.getByRole("spinbutton", { name: "Slots of build" });
  await slots.fill("2");
  await slots.press("Enter");
  await until(
    "the second one too",
    async () => (await daemon.task(second.id)).leader !== undefined,
  );
  await page.getByRole("button", { name: "Pause build" }).click();
  await page.getByRole("button", { name: "Resume build" }).waitFor();
  const { queues } = await daemon.call("ListQueues", {});
  assert.deepEqual(queues, [{ name: "build", slots: 2, paused: true, running: 2, waiting: 0 }]);
});
