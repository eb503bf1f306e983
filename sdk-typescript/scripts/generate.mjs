// Generates src/gen from the contract, or another folder with `--out FOLDER`. Needs nothing but Node
// and this package's own development dependencies.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const packageRoot = resolve(dirname(fileURLToPath(import.meta.url)), "..");

/** Where the proto files are: the contract, and the details of a refusal. */
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
  // Run where no configuration lies above: each input is a module of its own.
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
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [flag, folder, ...rest] = process.argv.slice(2);
  if (rest.length > 0 || (flag !== undefined && (flag !== "--out" || !folder))) {
    throw new Error("usage: generate.mjs [--out FOLDER]");
  }
  generate(folder === undefined ? join(packageRoot, "src/gen") : resolve(folder));
}
