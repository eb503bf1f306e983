/** The page with keys alone. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { newPage, openPage, startDaemon } from "./support/browser.js";
import { inState, openTask, openView, output, row, state } from "./support/parts.js";
import { until } from "./support/until.js";

/** @typedef {import("./support/browser.js").Page} Page */

/**
 * Presses Tab until the focus is on an element.
 * @param {Page} page
 * @param {import("playwright-core").Locator} part
 */
async function tabTo(page, part) {
  const isFocused = () => part.evaluate((element) => element === document.activeElement);
  for (let presses = 0; presses < 100; presses += 1) {
    if (await isFocused()) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`Tab does not reach ${part}`);
}

/** H3 */
test("every step from the list to the proof of a cancel works with keys", async (t) => {
  const daemon = await startDaemon(t);
  const script = "echo waiting; sleep 1000";
  const tasks = [];
  for (const name of ["first", "second", "third"])
    tasks.push(await daemon.script(script, { name }));
  const page = await newPage(t);
  await openPage(page, daemon);
  const keys = page.keyboard;
  for (const { id } of tasks) await row(page, id).waitFor();

  await keys.press("?");
  const help = page.getByRole("dialog", { name: "Keys" });
  await help.waitFor();
  await keys.press("Escape");
  await help.waitFor({ state: "hidden" });

  const second = tasks[1]?.id ?? "";
  const isSelected = async () => (await row(page, second).getAttribute("aria-selected")) === "true";
  await keys.press("g");
  await until("the second task is selected", async () => {
    if (await isSelected()) return true;
    await keys.press("j");
    return await isSelected();
  });
  await keys.press("/");
  await keys.type("second");
  await row(page, tasks[0]?.id ?? "").waitFor({ state: "detached" });
  await keys.press("Enter");
  await until("the found task is selected", isSelected);
  await keys.press("Enter");
  await inState(state(page), "running");
  assert.match(page.url(), new RegExp(`#/task/${second}$`));
  await output(page).getByText("waiting").waitFor();
  await tabTo(page, output(page));

  await tabTo(
    page,
    page.getByRole("toolbar", { name: "Actions" }).getByRole("button", { name: "Cancel" }),
  );
  await keys.press("Enter");
  const question = page.getByRole("dialog", { name: "Cancel" });
  await question.waitFor();
  await tabTo(page, question.getByRole("button", { name: "Cancel task" }));
  await keys.press("Enter");
  await inState(state(page), "cancelled");
  await page.getByRole("region", { name: "Stop" }).getByText("Proven empty").waitFor();
  await keys.press("Escape");
  await page.getByRole("treegrid", { name: "Finished tasks" }).waitFor();
});

/** H3 */
test("a task is cancelled from the list, and a question is left without an effect", async (t) => {
  const daemon = await startDaemon(t);
  const { id } = await daemon.script("sleep 1000");
  const page = await newPage(t);
  await openPage(page, daemon);
  await row(page, id).waitFor();
  const question = page.getByRole("dialog", { name: "Cancel" });
  await page.keyboard.press("g");
  await page.keyboard.press("x");
  await question.waitFor();
  await page.keyboard.press("Escape");
  await question.waitFor({ state: "hidden" });
  assert.equal((await daemon.task(id)).state, "TASK_STATE_RUNNING");
  await page.keyboard.press("x");
  await tabTo(page, question.getByRole("button", { name: "Cancel task" }));
  await page.keyboard.press("Enter");
  await row(page, id).waitFor({ state: "detached" });
  assert.equal((await daemon.task(id)).state, "TASK_STATE_CANCELLED");
});

/** H3 */
test("a key leaves the input for the output, whose keys work", async (t) => {
  const daemon = await startDaemon(t);
  const terminal = await daemon.script("sleep 1000", { terminal: {} });
  const plain = await daemon.script("sleep 1000", { input: {} });
  const page = await newPage(t);
  await openPage(page, daemon);
  for (const [{ id }, name, key] of /** @type {const} */ ([
    [terminal, "Terminal keys", "Shift+Escape"],
    [plain, "Input", "Escape"],
  ])) {
    await openTask(page, id);
    const field = page.getByRole("textbox", { name, exact: true });
    await field.waitFor();
    await until("the input is open", () => field.isEnabled());
    await page.keyboard.press("i");
    assert.ok(await field.evaluate((field) => field === document.activeElement));
    await page.keyboard.press(key);
    assert.ok(await output(page).evaluate((log) => log === document.activeElement));
  }
});

/** H3 */
test("a field beside the list keeps its keys", async (t) => {
  const daemon = await startDaemon(t);
  const { id } = await daemon.script("sleep 1000");
  const page = await newPage(t, { expected: /Failed to load resource.*401/ });
  await openPage(page, daemon);
  await row(page, id).waitFor();
  await page.keyboard.press("g");
  const order = page.getByRole("combobox", { name: "Order" });
  await order.focus();
  await page.keyboard.press("ArrowDown");
  assert.equal(await order.inputValue(), "newest");
  await page.keyboard.press("x");
  assert.equal(await page.getByRole("dialog").count(), 0);
  await page.evaluate(() => (location.hash = "#/?token=wrong"));
  await page.reload();
  const token = page.getByRole("textbox", { name: "Token" });
  await token.waitFor();
  await token.pressSequentially("jkgxG/");
  assert.equal(await token.inputValue(), "jkgxG/");
});

/** H3 */
test("a queue keeps the focus while its tasks start and end, and after a change", async (t) => {
  const daemon = await startDaemon(t);
  await daemon.call("UpdateQueue", { name: "build", slots: 2 });
  const page = await newPage(t);
  await openPage(page, daemon);
  await openView(page, "Queues");
  const running = page.locator('[data-queue="build"] td').first();
  const isFocused = async (/** @type {import("playwright-core").Locator} */ part) =>
    assert.ok(await part.evaluate((element) => element === document.activeElement));
  const pause = page.getByRole("button", { name: "Pause build" });
  await pause.focus();
  await daemon.script("sleep 1000", { queue: "build" });
  await running.filter({ hasText: "1" }).waitFor();
  await isFocused(pause);
  await page.keyboard.press("Enter");
  const resume = page.getByRole("button", { name: "Resume build" });
  await resume.waitFor();
  await isFocused(resume);
  await page.keyboard.press("Enter");
  await pause.waitFor();
  const slots = page.getByRole("spinbutton", { name: "Slots of build" });
  await slots.fill("3");
  await slots.press("Enter");
  await page.locator('[data-queue="build"] .slot').nth(2).waitFor();
  await isFocused(slots);
  await slots.press("ArrowUp");
  await slots.press("Tab");
  await page.locator('[data-queue="build"] .slot').nth(3).waitFor();
  assert.equal(await slots.inputValue(), "4");
});

/** H3 */
test("the command of a task can be selected while its output flows", async (t) => {
  const daemon = await startDaemon(t);
  const { id } = await daemon.script("while :; do echo line; sleep 0.02; done");
  const page = await newPage(t);
  await openPage(page, daemon);
  await openTask(page, id);
  const summary = page.getByRole("region", { name: "Summary" });
  const written = summary.locator("dt:text-is('Output') + dd");
  const size = async () => await written.textContent();
  await until("some output", async () => !/^0/.test((await size()) ?? "0"));
  const command = summary.getByText("while :", { exact: false }).first();
  const selection = () => page.evaluate(() => String(getSelection()));
  await command.evaluate((element) => void getSelection()?.selectAllChildren(element));
  const selected = await selection();
  assert.match(selected, /^while :/);
  const before = await size();
  await until("more output", async () => (await size()) !== before);
  assert.equal(await selection(), selected);
});

/** H3 */
test("a key moves the output in the next frame", async (t) => {
  const daemon = await startDaemon(t);
  const { id } = await daemon.script("seq 1 1000");
  await until("the end", async () => (await daemon.task(id)).state === "TASK_STATE_COMPLETED");
  const page = await newPage(t);
  // It shows changes of other kinds.
  await page.addInitScript(() => Object.assign(globalThis, { setInterval: () => 0 }));
  await openPage(page, daemon);
  await openTask(page, id);
  await output(page).getByText("1000", { exact: true }).waitFor();
  await page.keyboard.press("f");
  await output(page).evaluate(async (log) => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    await frame();
    log.dispatchEvent(new KeyboardEvent("keydown", { key: "g", bubbles: true }));
    await frame();
    await frame();
    const lines = [...log.querySelectorAll("[data-offset]")].map((line) => line.textContent);
    if (!lines.includes("1")) throw new Error(`it shows ${lines.join(" ")}`);
  });
});
