/** The folder of the package, as seen from build/test/support. */
import { fileURLToPath } from "node:url";

export const PACKAGE = fileURLToPath(new URL("../../..", import.meta.url));
