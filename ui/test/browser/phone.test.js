/** The page on a small screen. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { newPage, openPage, startDaemon } from "./support/browser.js";
import { lines, openTask, output, row } from "./support/parts.js";
import { until } from "./support/until.js";

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true };

/** H3 */
test("a long output on a phone is a part of the screen, and its end is followed", async (t) => {
  const daemon = await startDaemon(t);
  const { id } = await daemon.script("seq 1 30000; read -r line; seq 30001 30500; sleep 1000", {
    input: {},
  });
  const page = await newPage(t, { context: PHONE });
  await openPage(page, daemon);
  await openTask(page, id);
  const isLast = async (/** @type {string} */ text) => (await lines(page)).at(-1)?.text === text;
  await until("the last line", () => isLast("30000"));
  const { log, window, elements } = await output(page).evaluate((log) => ({
    log: log.clientHeight,
    window: innerHeight,
    elements: log.querySelectorAll("[data-offset]").length,
  }));
  assert.ok(log < window, `the output is ${log} pixels high, the window ${window}`);
  assert.ok(elements < 200, `${elements} lines are elements`);

  await daemon.command("send", "--take-over", "--enter", id, "go");
  await until("the last line of more", () => isLast("30500"));
  const end = output(page).getByText("30500", { exact: true });
  const below = await end.evaluate(
    (line) =>
      line.getBoundingClientRect().bottom -
      (line.closest("[role=log]")?.getBoundingClientRect().bottom ?? 0),
  );
  assert.ok(below < 2, `the last line is ${below} pixels below the output`);
  const follow = page.getByRole("button", { name: "Follow" });
  assert.equal(await follow.getAttribute("aria-pressed"), "true");
});

/** H3 */
test("the age of a task with ports is at the end of its row on a phone", async (t) => {
  const daemon = await startDaemon(t);
  const server = "require('node:net').createServer().listen(0, '127.0.0.1')";
  const { task } = await daemon.call("Spawn", {
    spec: { argv: { args: [process.execPath, "-e", server] } },
  });
  const page = await newPage(t, { context: PHONE });
  await openPage(page, daemon);
  const cell = (/** @type {string} */ name) => row(page, task.id).locator(`.cell-${name}`);
  await cell("ports").filter({ hasText: /:\d+/ }).waitFor();
  const end = async (/** @type {string} */ name) =>
    await cell(name).evaluate((cell) => {
      const text = document.createRange();
      text.selectNodeContents(cell);
      return text.getBoundingClientRect().right;
    });
  assert.ok(Math.abs((await end("age")) - (await end("ports"))) < 2);
});

/** H3 */
test("the screen and the input of a terminal, and the input of a program, fit a phone", async (t) => {
  const daemon = await startDaemon(t);
  const terminal = await daemon.script("sleep 1000", { terminal: {} });
  const program = await daemon.script("sleep 1000", { input: {} });
  const page = await newPage(t, { context: PHONE });
  await openPage(page, daemon);
  for (const [{ id }, name] of /** @type {const} */ ([
    [terminal, "Terminal keys"],
    [program, "Input"],
  ])) {
    await openTask(page, id);
    const field = page.getByRole("textbox", { name, exact: true });
    await until("a text", async () => ((await field.getAttribute("placeholder")) ?? "") !== "");
    const { text, room } = await field.evaluate(placeholder);
    assert.ok(text > 0 && text <= room, `${name}: a text of ${text} pixels in ${room}`);
  }
  await openTask(page, terminal.id);
  const screen = page.getByRole("region", { name: "Screen" });
  await screen.waitFor();
  const isInside = await screen
    .locator("pre")
    .evaluate((screen) => screen.getBoundingClientRect().right <= innerWidth);
  assert.ok(isInside, "the screen is wider than the phone");
});

/** The widths of the text in an empty field and of the room for it. @param {Element} field */
function placeholder(field) {
  const { fontSize, fontFamily, paddingLeft, paddingRight } = getComputedStyle(field);
  const context = document.createElement("canvas").getContext("2d");
  if (context) context.font = `${fontSize} ${fontFamily}`;
  return {
    text: context?.measureText(field.getAttribute("placeholder") ?? "").width ?? 0,
    room: field.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight),
  };
}
