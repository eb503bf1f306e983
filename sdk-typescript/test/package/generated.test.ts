import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { PACKAGE } from "../support/package.js";

/** The files below a folder, by their relative paths. */
function files(folder: string): Map<string, string> {
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const found = paths.filter((path) => path.endsWith(".ts")).sort();
  return new Map(found.map((path) => [path, readFileSync(join(folder, path), "utf8")]));
}

test("src/gen is up to date with the contract", (t) => {
  const out = mkdtempSync(join(tmpdir(), "heeler-gen-"));
  t.after(() => {
    rmSync(out, { recursive: true });
  });
  execFileSync(process.execPath, [join(PACKAGE, "scripts/generate.mjs"), "--out", out]);
  const [fresh, kept] = [files(out), files(join(PACKAGE, "src/gen"))];
  assert.deepEqual([...kept.keys()], [...fresh.keys()], "run proto/generate");
  for (const [path, text] of fresh) {
    assert(kept.get(path) === text, `${path} is stale: run proto/generate`);
  }
});
