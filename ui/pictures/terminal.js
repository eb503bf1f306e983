/** A real program in a real terminal: the daemon runs it with a PTY, xterm.js draws its output. */
import { createRequire } from "node:module";

import { findBinary } from "../test/browser/support/daemon.js";
import { until } from "../test/browser/support/until.js";

/** @typedef {import("../test/browser/support/daemon.js").Daemon} Daemon */
/** @typedef {import("playwright-core").Page} Page */

const SIZE = { columns: 120, rows: 28 };
const { resolve } = createRequire(import.meta.url);

/**
 * Runs `heeler top` on the tasks of one daemon as a task of another, and draws its screen.
 * @param {Daemon} host The daemon that runs it
 * @param {Daemon} shown The daemon that it shows
 * @param {{selected: string, wanted: string[]}} content The task to select, and texts that must be on the screen
 * @param {Page} page An empty page
 */
export async function drawTop(host, shown, { selected, wanted }, page) {
  const spec = {
    argv: { args: [findBinary(), "top", "--addr", shown.address] },
    environment: { variables: { COLORTERM: "truecolor" } },
    terminal: SIZE,
  };
  const { task } = await host.call("Spawn", { spec });
  const screen = async () => {
    const answer = await host.call("Inspect", { taskId: task.id, includeScreen: true });
    return JSON.stringify(answer.screen ?? "");
  };
  await until("the tasks are on the screen", async () => (await screen()).includes(selected));
  const outputOf = async () => /output of ([\w-]+)/.exec(await screen())?.[1];
  for (let last = await outputOf(); last !== selected;) {
    await type(host, task.id, "j");
    last = await until("another task is selected", async () => {
      const now = await outputOf();
      return now !== last && now;
    });
  }
  await until("the screen is complete", async () => {
    const text = await screen();
    return wanted.every((part) => text.includes(part));
  });
  const output = await host.call("ReadOutput", { taskId: task.id, maxBytes: 1 << 20 });
  const bytes = output.chunks.map((/** @type {{data?: string}} */ chunk) => chunk.data ?? "");
  await host.call("Cancel", { filter: { taskIds: [task.id] }, wait: true });
  await draw(page, bytes);
}

/**
 * @param {Daemon} host
 * @param {string} taskId
 * @param {string} keys
 */
async function type(host, taskId, keys) {
  await host.call("WriteInput", { taskId, data: Buffer.from(keys).toString("base64") });
}

/**
 * Draws output in base64.
 * @param {Page} page
 * @param {string[]} output
 */
async function draw(page, output) {
  await page.setContent(
    '<div id="terminal" style="width: max-content; padding: 8px; background: #16181d"></div>',
  );
  await page.addStyleTag({ path: resolve("@xterm/xterm/css/xterm.css") });
  await page.addScriptTag({ path: resolve("@xterm/xterm/lib/xterm.js") });
  await page.evaluate(
    async ({ output, size }) => {
      const { Terminal } = /** @type {typeof import("@xterm/xterm")} */ (
        /** @type {unknown} */ (globalThis)
      );
      const terminal = new Terminal({
        cols: size.columns,
        rows: size.rows,
        fontFamily: "DejaVu Sans Mono",
        fontSize: 14,
        cursorInactiveStyle: "none",
        theme: { background: "#16181d", foreground: "#d5d8df" },
      });
      terminal.open(/** @type {HTMLElement} */ (document.getElementById("terminal")));
      for (const text of output) {
        const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
        await new Promise((done) => terminal.write(bytes, () => done(undefined)));
      }
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    },
    { output, size: SIZE },
  );
}
