import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Daemon } from "../support/daemon.js";
import { PACKAGE } from "../support/package.js";

const CONSUMER = `
import { type BackgroundTask, HeelerClient } from "@heeler/client";
import * as v1 from "@heeler/client/v1";

await using client = await HeelerClient.connect();
const task = await client.spawn({ shell: "exit 7" });
const ended = await task.wait();
const message: BackgroundTask & v1.BackgroundTask = ended;
console.log(ended.exitCode, message.state === v1.TaskState.FAILED);
`;

/** A program in a CommonJS module. */
const COMMON_JS = (load: string): string => `
void (async () => {
  const { HeelerClient } = ${load};
  const client = await HeelerClient.connect();
  const task = await client.spawn({ shell: "exit 7" });
  console.log((await task.wait()).exitCode);
  client.close();
})();
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
  assert(paths.includes("src/index.ts") && paths.includes("dist/index.d.ts.map"));
  assert(paths.every((path) => /^(?:dist|src)\/|^[A-Z]|^package\.json$/u.test(path)));
  for (const license of ["LICENSE-MIT", "LICENSE-APACHE"]) {
    const [own, root] = [join(PACKAGE, license), join(PACKAGE, "..", license)];
    assert.equal(readFileSync(own, "utf8"), readFileSync(root, "utf8"));
  }

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

  writeFileSync(join(folder, "imports.cjs"), COMMON_JS('await import("@heeler/client")'));
  assert.equal(run(process.execPath, ["imports.cjs"], folder, env), "7\n");
  writeFileSync(join(folder, "requires.cjs"), COMMON_JS('require("@heeler/client")'));
  const canRequire = "require_module" in process.features;
  if (canRequire) {
    assert.equal(run(process.execPath, ["requires.cjs"], folder, env), "7\n");
  } else {
    assert.throws(() => run(process.execPath, ["requires.cjs"], folder, env), /ERR_REQUIRE_ESM/u);
  }
  const map = join(folder, "node_modules/@heeler/client/dist/client.js.map");
  const { sources } = JSON.parse(readFileSync(map, "utf8")) as { sources: string[] };
  assert(existsSync(join(map, "..", sources[0] ?? "")), "the source of the map is in the package");
});
