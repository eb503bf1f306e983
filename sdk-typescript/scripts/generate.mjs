// Generates src/gen from the contract, or another folder with `--out FOLDER`. Needs only Node and this
// package's own development dependencies.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const packageRoot = resolve(dirname(fileURLToPath(import.meta.url)), "..");

/** The folders with proto files: the contract, and the error details. */
const inputs = [resolve(packageRoot, "../proto"), resolve(packageRoot, "proto")];

/** Empties `out`, then fills it. */
export function generate(out) {
  const bin = join(packageRoot, "node_modules/.bin");
  const template = JSON.stringify({
    version: "v2",
    plugins: [
      {
        local: join(bin, "protoc-gen-es"),
        out,
        opt: ["target=ts", "import_extension=js"],
      },
    ],
  });
  rmSync(out, { recursive: true, force: true });
  // buf reads the configuration of its working directory and of the folders above it. In an empty
  // folder it finds none, and each input is a module of its own.
  const neutral = mkdtempSync(join(tmpdir(), "heeler-generate-"));
  try {
    for (const input of inputs) {
      execFileSync(join(bin, "buf"), ["generate", "--template", template, input], {
        cwd: neutral,
        stdio: "inherit",
      });
    }
  } finally {
    rmSync(neutral, { recursive: true });
  }
  writeIndex(join(out, "heeler/v1"));
}

/** Writes the module that exports all generated modules of a folder. */
function writeIndex(folder) {
  const modules = readdirSync(folder)
    .filter((file) => file.endsWith("_pb.ts"))
    .sort();
  const lines = modules.map((file) => `export * from "./${file.replace(/\.ts$/u, ".js")}";\n`);
  writeFileSync(join(folder, "index.ts"), lines.join(""));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [flag, folder, ...rest] = process.argv.slice(2);
  if (rest.length > 0 || (flag !== undefined && (flag !== "--out" || !folder))) {
    throw new Error("usage: generate.mjs [--out FOLDER]");
  }
  generate(folder === undefined ? join(packageRoot, "src/gen") : resolve(folder));
}
