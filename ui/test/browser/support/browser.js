/** Debian's Chromium, and pages in it that fail their test if they report a fault. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";

import { afterwards } from "./afterwards.js";
import { launch } from "./chromium.js";
import { Daemon, ROOT } from "./daemon.js";
import { LIMIT_MS } from "./until.js";

/** @typedef {import("playwright-core").Page} Page */
/** @typedef {import("playwright-core").BrowserContextOptions} ContextOptions */
/** @typedef {import("node:test").TestContext} TestContext */

/** Pictures of pages whose test has failed. */
const PICTURES = join(ROOT, "target/page-failures");

/** Everything that a test file leaves on the disk, the profile of the browser included. */
const dir = mkdtempSync(join(tmpdir(), "heeler-ui-"));
process.env["TMPDIR"] = dir;

/** @type {Promise<import("playwright-core").Browser> | undefined} */
let browser;

/** The browser of this test file, with a new profile. */
export async function theBrowser() {
  browser ??= launch();
  return await browser;
}

after(async () => {
  await (await browser)?.close();
  rmSync(dir, { recursive: true, force: true, maxRetries: 10 });
});

/**
 * A daemon, which ends with the test.
 * @param {TestContext} t
 * @param {...string} args
 */
export async function startDaemon(t, ...args) {
  const daemon = new Daemon(...args);
  afterwards(t, () => daemon.end());
  await daemon.start();
  return daemon;
}

/**
 * An empty page, which closes with the test. What it reports as an error or as a violation of its content
 * security policy fails the test, unless it is expected.
 * @param {TestContext} t
 * @param {{expected?: RegExp, context?: ContextOptions}} [options]
 */
export async function newPage(t, { expected, context: options = {} } = {}) {
  const context = await (await theBrowser()).newContext(options);
  context.setDefaultTimeout(LIMIT_MS);
  const page = await context.newPage();
  /** @type {string[]} */
  const faults = [];
  const report = (/** @type {string} */ fault) => {
    if (!expected?.test(fault)) faults.push(fault);
  };
  page.on("pageerror", (error) => report(`error: ${error.stack ?? error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") report(`console: ${message.text()}`);
  });
  page.on("dialog", (dialog) => report(`dialog: ${dialog.message()}`));
  afterwards(t, async () => {
    // Newer than the types: Node.js 20.12.
    if (!Reflect.get(t, "passed")) {
      mkdirSync(PICTURES, { recursive: true });
      const name = `${t.name.replace(/\W+/g, "-")}.png`;
      await page.screenshot({ path: join(PICTURES, name) }).catch(() => undefined);
    }
    await context.close();
    if (faults.length > 0) throw new Error(`the page reported\n${faults.join("\n")}`);
  });
  return page;
}

/**
 * Opens the page of a daemon with its token, and waits until it is connected.
 * @param {Page} page
 * @param {Daemon} daemon
 */
export async function openPage(page, daemon) {
  await page.goto(`${daemon.origin}/#token=${daemon.token}`);
  await connected(page);
}

/**
 * Waits until the page says that it is connected.
 * @param {Page} page
 */
export async function connected(page) {
  await page
    .getByRole("status", { name: "Connection" })
    .filter({ hasText: /^\s*Connected/ })
    .waitFor();
}
