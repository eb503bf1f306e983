import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Daemon } from "../support/daemon.js";
import { PACKAGE } from "../support/package.js";

const CONSUMER = `
import { type BackgroundTask, HeelerClient, v1 } from "@heeler/client";

await using client = await HeelerClient.connect();
const task = await client.spawn({ shell: "exit 7" });
const ended = await task.wait();
const message: BackgroundTask & v1.BackgroundTask = ended;
console.log(ended.exitCode, message.state === v1.TaskState.FAILED);
`;

const STRICT = {
  compilerOptions: {
    target: "ES2022",
    lib: ["ES2022", "ESNext.Disposable", "DOM"],
    module: "NodeNext",
    strict: true,
    exactOptionalPropertyTypes: true,
    types: [],
  },
  files: ["main.ts"],
};

test("the npm package installs, compiles and runs in another project", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "heeler-pack-"));
  t.after(() => {
    rmSync(folder, { recursive: true });
  });
  const run = (command: string, args: string[], cwd: string, env = process.env): string =>
    execFileSync(command, args, { cwd, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

  // Packs the present build. Building again would remove files that other tests use.
  const pack = ["pack", "--ignore-scripts", "--json", "--pack-destination", folder];
  const [packed] = JSON.parse(run("npm", pack, PACKAGE)) as [
    { filename: string; files: { path: string }[] },
  ];
  const paths = packed.files.map(({ path }) => path);
  assert(paths.includes("dist/index.js") && paths.includes("dist/index.d.ts"));
  assert(paths.includes("README.md") && paths.includes("LICENSE-MIT"));
  assert(paths.every((path) => !path.startsWith("src/") && !path.startsWith("test/")));

  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  const quietly = ["--no-audit", "--no-fund", "--prefer-offline", "--ignore-scripts"];
  run("npm", ["install", ...quietly, `./${packed.filename}`], folder);
  writeFileSync(join(folder, "main.ts"), CONSUMER);
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(STRICT));
  run(process.execPath, [join(PACKAGE, "node_modules/typescript/bin/tsc"), "-p", "."], folder);
  const script = readFileSync(join(folder, "main.js"), "utf8");
  assert.match(script, /@heeler\/client/u);

  await using daemon = await Daemon.start();
  const env = { ...process.env, HEELER_ADDR: daemon.address };
  assert.equal(run(process.execPath, ["main.js"], folder, env), "7 true\n");
});
