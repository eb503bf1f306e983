/** The folder of the package, relative to build/test/support. */
import { fileURLToPath } from "node:url";

export const PACKAGE = fileURLToPath(new URL("../../..", import.meta.url));
