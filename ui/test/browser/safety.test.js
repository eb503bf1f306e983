/** Other sites, wrong tokens, and hostile names and output. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";

import { afterwards } from "./support/afterwards.js";
import { connected, newPage, openPage, startDaemon } from "./support/browser.js";
import { lines, openTask, openView, output, row } from "./support/parts.js";
import { until } from "./support/until.js";

/** @typedef {import("./support/browser.js").TestContext} TestContext */

/**
 * The origin of a page of another site.
 * @param {TestContext} t
 */
async function otherSite(t) {
  const server = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end("<!doctype html><title>another site</title><p>another site");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  afterwards(t, async () => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return `http://127.0.0.1:${port}`;
}

/** H2 */
test("a page of another origin gets no answer and starts nothing, with the token too", async (t) => {
  const daemon = await startDaemon(t);
  const page = await newPage(t, {
    expected: /Failed to load resource|CORS policy|frame-ancestors|Framing/,
  });
  await page.goto(await otherSite(t));
  const { origin, token } = daemon;
  const answers = await page.evaluate(
    async ({ origin, token }) => {
      const url = `${origin}/heeler.v1.BackgroundTasks/Spawn`;
      const body = JSON.stringify({ spec: { shell: { script: "sleep 1000" } } });
      const json = { "content-type": "application/json" };
      /** @type {RequestInit[]} */
      const attempts = [
        { headers: { ...json, authorization: `Bearer ${token}` }, body },
        { headers: json, body },
        { mode: "no-cors", headers: { "content-type": "text/plain" }, body },
        { mode: "no-cors", body },
      ];
      const send = async (/** @type {RequestInit} */ attempt) => {
        const answer = await fetch(url, { method: "POST", ...attempt });
        return answer.type === "opaque" ? "unreadable" : await answer.text();
      };
      const results = await Promise.allSettled(attempts.map(send));
      return results.map((one) => (one.status === "fulfilled" ? one.value : "refused"));
    },
    { origin, token },
  );
  // Chromium hides an opaque answer, or refuses it if it looks like data.
  for (const answer of answers) assert.ok(answer === "refused" || answer === "unreadable", answer);
  await page.evaluate(async (origin) => {
    const frame = document.createElement("iframe");
    frame.src = `${origin}/`;
    const loaded = new Promise((resolve) => frame.addEventListener("load", resolve));
    document.body.append(frame);
    await loaded;
  }, origin);
  const frame = page.frames().find((one) => one !== page.mainFrame());
  assert.match(frame?.url() ?? "", /^chrome-error:/, "the page is shown in a frame");
  assert.deepEqual(await daemon.liveIds(), []);
});

/** H2 */
test("another host name that resolves to the machine gets nothing", async (t) => {
  const daemon = await startDaemon(t);
  const page = await newPage(t, { expected: /Failed to load resource|Cross-Origin-Opener/ });
  const { port } = new URL(daemon.origin);
  const answer = await page.goto(`http://evil.example:${port}/#token=${daemon.token}`);
  assert.equal(answer?.status(), 403);
  assert.equal(await page.getByRole("navigation").count(), 0);
});

/** H2 */
test("without the right token the page shows nothing but what to do", async (t) => {
  const daemon = await startDaemon(t);
  const { id } = await daemon.script("sleep 1000", { name: "secret name" });
  const page = await newPage(t, { expected: /Failed to load resource.*401/ });
  for (const address of [
    daemon.origin,
    `${daemon.origin}/#token=wrong`,
    `${daemon.origin}/#/task/${id}?token=wrong`,
  ]) {
    await page.goto("about:blank");
    await page.goto(address);
    const access = page.getByRole("region", { name: "Access" });
    await access.getByText("heeler dashboard").waitFor();
    assert.equal(await page.getByText("secret name").count(), 0);
    assert.equal(await row(page, id).count(), 0);
  }
  const access = page.getByRole("region", { name: "Access" });
  await access.getByRole("textbox", { name: "Token" }).fill(daemon.token);
  await access.getByRole("button", { name: "Use token" }).click();
  await connected(page);
  await access.waitFor({ state: "hidden" });
  assert.ok(!page.url().includes(daemon.token), "the token is in the address");
  await page.reload();
  await connected(page);
});

/** H2 */
test("a task that was opened without a token is shown with its output once there is one", async (t) => {
  const daemon = await startDaemon(t);
  const { id } = await daemon.script("echo output; sleep 1000", { name: "opened" });
  const page = await newPage(t, { expected: /Failed to load resource.*401/ });
  const refused = page.waitForResponse(/ReadOutput$/);
  await page.goto(`${daemon.origin}/#/task/${id}`);
  await refused;
  const access = page.getByRole("region", { name: "Access" });
  await access.getByRole("textbox", { name: "Token" }).fill(daemon.token);
  await access.getByRole("button", { name: "Use token" }).click();
  await connected(page);
  await output(page).getByText("output", { exact: true }).waitFor();
});

/** H2 */
test("a page of a read-only address shows tasks and offers no action", async (t) => {
  const daemon = await startDaemon(t, "--http-read-only");
  const id = await daemon.command("spawn", "--", "sleep", "1000");
  const page = await newPage(t);
  await openPage(page, daemon);
  await row(page, id).waitFor();
  await page.getByText("Read-only").first().waitFor();
  await openTask(page, id);
  await page.getByRole("region", { name: "Processes" }).waitFor();
  assert.equal(await page.getByRole("toolbar", { name: "Actions" }).getByRole("button").count(), 0);
  await page.keyboard.press("x");
  assert.equal(await page.getByRole("dialog").count(), 0);
});

const MARKUP =
  '<img src=x onerror="hacked=1"><script>hacked=1</script><svg onload="hacked=1">&lt;b&gt;</b>';

/** H2 */
test("hostile names and output are text", async (t) => {
  const daemon = await startDaemon(t);
  const page = await newPage(t);
  await openPage(page, daemon);
  const sequences = [
    "\\033]0;hacked title\\007",
    "\\033]8;;javascript:hacked=1\\007link\\033]8;;\\007",
    "\\033[2J\\033[H\\033[999;999H",
    "\\033[38;2;1;2;3mcolour\\033[0m",
    "\\033P+q544e\\033\\\\",
    "\\033_hidden\\033\\\\",
    "\\000\\001\\002\\377\\376",
    "\\342\\200\\256backwards",
  ];
  const script = `printf '%s\\n' "$MARKUP"; printf '${sequences.join("\\n")}\\nafter\\n'; printf '\\033[31mopen'; sleep 1000`;
  const { id } = await daemon.script(script, {
    name: MARKUP,
    sessionId: MARKUP,
    queue: MARKUP,
    labels: { [MARKUP]: MARKUP },
    environment: { variables: { MARKUP } },
    output: { patterns: [{ name: MARKUP, regex: "after" }] },
  });
  await row(page, id).filter({ hasText: MARKUP }).waitFor();
  await openTask(page, id);
  await output(page).getByText("after", { exact: true }).waitFor();
  const texts = (await lines(page)).map(({ text }) => text);
  assert.equal(texts[0], MARKUP);
  assert.ok(texts.includes("link") && texts.includes("colour"), JSON.stringify(texts));
  // Control characters are not in the text, or are shown as pictures of them.
  assert.doesNotMatch(texts.join("\n"), /[\x00-\x08\x0b-\x1f\x7f]/);
  await page.getByRole("heading", { level: 1 }).filter({ hasText: MARKUP }).waitFor();
  for (const view of /** @type {const} */ (["Live", "Queues", "Events", "Server", "Finished"])) {
    await openView(page, view);
    if (view === "Queues")
      await page.locator("[data-queue]").filter({ hasText: MARKUP }).first().waitFor();
    const made = page.locator('[onerror], [onload], [src="x"], a[href^="javascript" i]');
    assert.equal(await made.count(), 0, view);
  }
  assert.ok(!(await page.title()).includes("hacked title"));
  assert.equal(await page.evaluate(() => "hacked" in globalThis), false);
  await daemon.call("Cancel", { filter: { taskIds: [id] }, reason: MARKUP, force: {}, wait: true });
  await until("the end in the list", async () => {
    await openView(page, "Finished");
    return (await row(page, id).count()) === 1;
  });
  await openTask(page, id);
  await page.getByRole("region", { name: "Stop" }).getByText(MARKUP).first().waitFor();
  assert.equal(await page.evaluate(() => "hacked" in globalThis), false);
});
