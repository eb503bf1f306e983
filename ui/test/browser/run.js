/** Every test file in one process, so that they share one browser. */
import { readdirSync } from "node:fs";

const here = new URL(".", import.meta.url);
for (const name of readdirSync(here).sort()) {
  if (name.endsWith(".test.js")) await import(new URL(name, here).href);
}
