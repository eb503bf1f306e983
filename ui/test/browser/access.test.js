/** Small screens, and assistive technology. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";

import { newPage, openPage, startDaemon } from "./support/browser.js";
import { openTask, openView, output, row } from "./support/parts.js";

/** @typedef {import("./support/browser.js").Page} Page */
/** @typedef {import("./support/daemon.js").Daemon} Daemon */

const LONG = "averylongnamewithoutanyplacetobreakit".repeat(6);

/**
 * Calls `check` on each view of a daemon that has tasks of several kinds.
 * @param {Page} page
 * @param {Daemon} daemon
 * @param {(name: string) => Promise<void>} check
 */
async function onEachView(page, daemon, check) {
  const script = `echo ${LONG}; echo bad >&2; printf '\\033[33mcolours\\033[0m \\033[7minverse\\033[0m\\n'; sleep 1000`;
  const spec = { name: LONG, sessionId: LONG, labels: { [LONG.slice(0, 200)]: LONG } };
  const { id } = await daemon.script(script, spec);
  await daemon.call("UpdateQueue", { name: "build", paused: true });
  const queued = await daemon.script("make", { queue: "build", parentId: id });
  const failed = await daemon.script("echo no; exit 3");
  const cancelled = await daemon.script("sleep 1000");
  await daemon.call("Cancel", { filter: { taskIds: [cancelled.id] }, reason: "test", wait: true });
  await openPage(page, daemon);
  await row(page, queued.id).waitFor();
  await check("Live");
  for (const view of /** @type {const} */ (["Finished", "Queues", "Events", "Server"])) {
    await openView(page, view);
    if (view === "Finished") await row(page, failed.id).waitFor();
    await check(view);
  }
  for (const task of [id, failed.id]) {
    await openTask(page, task);
    await output(page)
      .getByText(task === id ? "colours" : "no")
      .first()
      .waitFor();
    await check(`task ${task}`);
  }
  await openTask(page, cancelled.id);
  await page.getByRole("region", { name: "Stop" }).waitFor();
  await check("cancelled task");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await check("keys");
}

/** H3 */
test("no view is wider than a phone", async (t) => {
  const daemon = await startDaemon(t);
  const viewport = { width: 360, height: 740 };
  const page = await newPage(t, { context: { viewport, isMobile: true, hasTouch: true } });
  await onEachView(page, daemon, async (name) => {
    const sizes = await page.evaluate(() => {
      const { scrollWidth, clientWidth } = document.documentElement;
      return { scrollWidth, clientWidth, bodyWidth: document.body.scrollWidth };
    });
    assert.deepEqual(sizes, { scrollWidth: 360, clientWidth: 360, bodyWidth: 360 }, name);
  });
});

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/**
 * The serious findings on what a page shows.
 * @param {Page} page
 */
async function findings(page) {
  return await page.evaluate(async () => {
    const { axe } = /** @type {{axe: typeof import("axe-core")}} */ (
      /** @type {unknown} */ (globalThis)
    );
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    return violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .flatMap(({ id, nodes }) =>
        nodes.map((node) => `${id}: ${node.html}: ${node.failureSummary}`),
      );
  });
}

/** H3 */
test("an accessibility check finds nothing serious, in light and dark", async (t) => {
  const daemon = await startDaemon(t);
  const page = await newPage(t, { context: { reducedMotion: "reduce" } });
  await page.addInitScript(axe);
  await onEachView(page, daemon, async (name) => {
    for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
      await page.emulateMedia({ colorScheme });
      assert.deepEqual(await findings(page), [], `${name}, ${colorScheme}`);
    }
  });
});
