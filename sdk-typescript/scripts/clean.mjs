// Removes a folder of build products.
import { rmSync } from "node:fs";

const [folder] = process.argv.slice(2);
if (folder !== "dist" && folder !== "build") {
  throw new Error("usage: clean.mjs dist|build");
}
rmSync(new URL(`../${folder}`, import.meta.url), { recursive: true, force: true });
