/** Starts the user's daemon by `heeler start`, as the command does. Nothing else here starts one. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

import { DaemonStartError, NotInstalledError } from "../errors.js";

/** The program to run, and the origin of its name. */
interface Program {
  readonly path: string;
  readonly origin: string;
}

/**
 * Runs `heeler start` and returns the address that it prints once the daemon answers. The program is the
 * given one, else the one that `HEELER_BINARY` names, else the `heeler` on the PATH.
 */
export async function startDaemon(given: string | undefined): Promise<string> {
  const { path, origin } = find(given);
  // An empty address is none for the clients, but not for the command.
  const env = { ...process.env, HEELER_ADDR: undefined };
  try {
    const { stdout } = await promisify(execFile)(path, ["start"], { env });
    return stdout.trim();
  } catch (error) {
    const { code, message, stderr } = error as ExecError;
    if (typeof code === "string") {
      throw new NotInstalledError(path, origin, message, { cause: error });
    }
    const problem = stderr === undefined || stderr === "" ? message : stderr;
    throw new DaemonStartError(path, `\`${path} start\` failed: ${problem.trim()}`, {
      cause: error,
    });
  }
}

/** An exit code of the program, or the code of the system's error if it could not be executed. */
interface ExecError extends Error {
  readonly code?: number | string;
  readonly stderr?: string;
}

function find(given: string | undefined): Program {
  if (given !== undefined) {
    return { path: given, origin: "the option program" };
  }
  const named = process.env["HEELER_BINARY"] ?? "";
  return named === ""
    ? { path: "heeler", origin: "PATH" }
    : { path: named, origin: "HEELER_BINARY" };
}
