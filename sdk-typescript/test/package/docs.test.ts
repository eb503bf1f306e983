import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";

import { Daemon, until } from "../support/daemon.js";
import { PACKAGE } from "../support/package.js";

/** Inside the package, so that the programs can import it by its name. */
const FOLDER = join(PACKAGE, "build/docs");
const RECIPE =
  /^## (?<title>\d+\. .*)\n\n(?:[^`#][^\n]*\n\n)?```ts\n(?<code>[^]*?)```\n\n```text\n(?<prints>[^]*?)```$/gmu;

const page = readFileSync(join(PACKAGE, "../docs/sdk/typescript.md"), "utf8");
const recipes = [...page.matchAll(RECIPE)].map(({ groups }, index) => ({
  title: groups?.["title"] ?? "",
  code: groups?.["code"] ?? "",
  prints: groups?.["prints"] ?? "",
  name: `recipe${(index + 1).toString()}`,
}));

/** The first steps of both READMEs, which are the same. */
const FIRST_STEPS = "first-steps";

function firstSteps(): string {
  const shown = ["../README.md", "README.md"].map((file) => {
    const [, block = "", more] = readFileSync(join(PACKAGE, file), "utf8").split("```ts\n");
    assert.equal(more, undefined, `${file} has one block`);
    return block.slice(0, block.indexOf("```"));
  });
  assert.equal(shown[0], shown[1]);
  return shown[0] ?? "";
}

before(() => {
  assert.equal(recipes.length, page.split("```ts").length - 1, "every block of the page");
  mkdirSync(FOLDER, { recursive: true });
  for (const { name, code } of recipes) {
    writeFileSync(join(FOLDER, `${name}.ts`), code);
  }
  writeFileSync(join(FOLDER, `${FIRST_STEPS}.ts`), firstSteps());
  const config = {
    extends: "../../tsconfig.json",
    compilerOptions: { rootDir: ".", outDir: ".", declaration: false, declarationMap: false },
    include: [],
    files: [FIRST_STEPS, ...recipes.map(({ name }) => name)].map((name) => `${name}.ts`),
  };
  writeFileSync(join(FOLDER, "tsconfig.json"), JSON.stringify(config));
  const compile = [join(PACKAGE, "node_modules/typescript/bin/tsc"), "-p", FOLDER];
  execFileSync(process.execPath, compile, { stdio: "inherit" });
});

/** Runs a recipe; `meanwhile` can read its output so far. */
async function run(
  name: string,
  daemon: Daemon,
  meanwhile: (printed: () => string) => Promise<void>,
): Promise<string> {
  const env = { ...process.env, HEELER_ADDR: daemon.address };
  const program = spawn(process.execPath, [join(FOLDER, `${name}.js`)], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let printed = "";
  program.stdout.setEncoding("utf8").on("data", (text: string) => {
    printed += text;
  });
  const closed = once(program, "close");
  await meanwhile(() => printed);
  const [code] = (await closed) as [number | null];
  assert.equal(code, 0);
  return printed;
}

for (const { title, name, prints } of recipes) {
  const across = title.includes("across restarts");
  test(`docs/sdk/typescript.md, ${title}`, async () => {
    await using daemon = await Daemon.start();
    using client = await daemon.connect();
    const task = across ? await client.spawn({ argv: ["sleep", "600"], name: "build" }) : undefined;
    const printed = await run(name, daemon, async (soFar) => {
      if (task !== undefined) {
        await until("the watch has begun", () => soFar().includes("\n") || undefined);
        await daemon.kill();
        await daemon.restart();
        await task.cancel();
      }
    });
    assert.equal(printed, prints);
  });
}

test("the first steps of the READMEs", async () => {
  await using daemon = await Daemon.start();
  const printed = await run(FIRST_STEPS, daemon, async () => {
    await Promise.resolve();
  });
  assert.match(printed, /^(?:2|127)\n$/u, "`make` finds no rule, or is not there");
});

test("the install lines are the same in README and on the page, and name what npm pack makes", () => {
  const { version } = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8")) as {
    version: string;
  };
  const lines = [
    "(cd sdk-typescript && npm ci && npm pack)",
    `npm install ./sdk-typescript/heeler-client-${version}.tgz`,
  ];
  for (const file of ["../README.md", "../docs/sdk/typescript.md", "README.md"]) {
    const text = readFileSync(join(PACKAGE, file), "utf8");
    for (const line of lines) {
      assert(text.includes(line), `${file} has no line ${line}`);
    }
  }
});
