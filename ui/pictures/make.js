/** Takes the pictures in docs/pictures of a daemon that runs a fixed session: `npm run pictures [DIRECTORY]`. */
import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { launch } from "../test/browser/support/chromium.js";
import { Daemon, ROOT } from "../test/browser/support/daemon.js";
import { inState, openTask, openView, output, row, state } from "../test/browser/support/parts.js";
import { LIMIT_MS, until } from "../test/browser/support/until.js";
import { startDemo } from "./demo.js";
import { drawTop } from "./terminal.js";

/** @typedef {import("playwright-core").Page} Page */

const DIRECTORY = process.argv[2] ?? join(ROOT, "docs/pictures");
const MAX_BYTES = 150_000;
const WIDE = { width: 1100, height: 470 };
const TALL = { width: 1100, height: 640 };
const PHONE = { width: 360, height: 640 };
/** Readings of CPU and memory before the first picture: the page takes one every five seconds. */
const READINGS = 6;

const temporary = mkdtempSync(join(tmpdir(), "heeler-pictures-"));
process.env["TMPDIR"] = temporary;
mkdirSync(DIRECTORY, { recursive: true });
const browser = await launch();
const daemon = new Daemon();
const host = new Daemon();
try {
  await daemon.start();
  await host.start();
  const demo = await startDemo(daemon);
  const page = await browser.newPage({ viewport: WIDE, colorScheme: "light" });
  page.setDefaultTimeout(LIMIT_MS);
  await takeList(page, demo);
  await takeTask(page, demo.tests);
  await takePhone(page);
  const terminal = await browser.newPage({ viewport: TALL });
  const wanted = [
    "reviewer",
    "integration tests",
    "stale",
    "40%",
    "processes, CPU",
    "Waiting for file changes",
  ];
  await drawTop(host, daemon, { selected: demo.tests, wanted }, terminal);
  await save("top", terminal.locator("#terminal"));
} finally {
  await browser.close();
  await daemon.end();
  await host.end();
  rmSync(temporary, { recursive: true, force: true, maxRetries: 10 });
}

/**
 * The list, light and dark, with some readings.
 * @param {Page} page
 * @param {import("./demo.js").Demo} demo
 */
async function takeList(page, { server, all }) {
  await page.goto(`${daemon.origin}/#token=${daemon.token}`);
  for (const id of all) await row(page, id).waitFor();
  await row(page, server).getByText("Ready").waitFor();
  await row(page, server).getByText(/:\d+/).waitFor();
  const line = row(page, server).locator("polyline").first();
  await until("readings", async () => {
    const points = await line.getAttribute("points");
    return (points?.split(" ").length ?? 0) >= READINGS;
  });
  await save("list-light", page);
  await page.emulateMedia({ colorScheme: "dark" });
  await save("list-dark", page);
}

/**
 * The page of a task.
 * @param {Page} page
 * @param {string} id
 */
async function takeTask(page, id) {
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize(TALL);
  await openTask(page, id);
  await inState(state(page), "running");
  await output(page).getByText("Waiting for file changes").waitFor();
  await page.getByRole("region", { name: "Processes" }).getByText("vitest").first().waitFor();
  await save("task", page);
}

/** The list on a phone. */
async function takePhone(/** @type {Page} */ page) {
  await page.emulateMedia({ colorScheme: "dark" });
  await page.setViewportSize(PHONE);
  await openView(page, "Live");
  await row(page, (await daemon.liveIds())[0] ?? "").waitFor();
  await save("phone", page);
}

/**
 * Writes one picture.
 * @param {string} name
 * @param {Page | import("playwright-core").Locator} part
 */
async function save(name, part) {
  const path = join(DIRECTORY, `${name}.png`);
  await part.screenshot({ path, animations: "disabled" });
  const { size } = statSync(path);
  console.log(`${name}.png: ${size} bytes`);
  if (size > MAX_BYTES) throw new Error(`${path} has ${size} bytes, more than ${MAX_BYTES}`);
}
