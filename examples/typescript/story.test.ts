import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Daemon } from "./daemon.js";

const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

test("the stories print what README.md shows", async () => {
  await using daemon = await Daemon.start();
  const env = { ...process.env, HEELER_ADDR: daemon.address };
  const { stdout } = await promisify(execFile)(process.execPath, [path("story.js")], { env });
  const shown = /```text\n(?<text>[^]*?)```/u.exec(readFileSync(path("../README.md"), "utf8"));
  assert.equal(stdout, shown?.groups?.["text"]);
});
