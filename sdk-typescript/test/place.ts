/** Where the package is, as seen from build/test. */
import { fileURLToPath } from "node:url";

export const PACKAGE = fileURLToPath(new URL("../..", import.meta.url));
