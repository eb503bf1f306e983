import { execFileSync } from "node:child_process";

import { chromium } from "playwright-core";

import { LIMIT_MS } from "./until.js";

const SWITCHES = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // A name of another site that resolves to this machine, as in DNS rebinding.
  "--host-resolver-rules=MAP evil.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/** Starts Debian's Chromium, with a new profile in the temporary directory. */
export async function launch() {
  return await chromium.launch({
    executablePath: execFileSync("which", ["chromium"], { encoding: "utf8" }).trim(),
    headless: true,
    args: SWITCHES,
    timeout: 2 * LIMIT_MS,
  });
}
