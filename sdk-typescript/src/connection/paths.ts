/**
 * The paths of a user's socket and token, by the same rules as in the daemon.
 *
 * This module creates nothing. It uses a directory under `/tmp` only if no other user can enter it,
 * because the process that listens there is sent commands to run.
 */
import { lstatSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";

import { AddressError } from "../errors.js";

/** The parents of the fallback directories; tests use others. */
export interface Fallbacks {
  readonly runUser: string;
  readonly tmp: string;
}

const SYSTEM: Fallbacks = { runUser: "/run/user", tmp: "/tmp" };

/**
 * The socket of this user's daemon: `$XDG_RUNTIME_DIR/heeler/heeler.sock`; without that variable,
 * `/run/user/<uid>/heeler/heeler.sock` if this user owns the directory, else
 * `/tmp/heeler-<uid>/heeler.sock`.
 */
export function defaultSocket(
  runtimeDir = process.env["XDG_RUNTIME_DIR"],
  uid = ownUid(),
  fallbacks = SYSTEM,
): string {
  // The XDG specification says to ignore relative paths.
  if (runtimeDir !== undefined && isAbsolute(runtimeDir)) {
    return join(runtimeDir, "heeler/heeler.sock");
  }
  const run = join(fallbacks.runUser, String(uid));
  const found = statSync(run, { throwIfNoEntry: false });
  if (found?.isDirectory() === true && found.uid === uid) {
    return join(run, "heeler/heeler.sock");
  }
  const dir = join(fallbacks.tmp, `heeler-${uid.toString()}`);
  checkPrivate(dir, uid);
  return join(dir, "heeler.sock");
}

/** The file with the token of this user's daemon. */
export function defaultTokenFile(): string {
  const given = process.env["HEELER_STATE_DIR"] ?? "";
  if (given !== "") {
    return join(resolve(given), "token");
  }
  const state = process.env["XDG_STATE_HOME"] ?? "";
  return join(isAbsolute(state) ? state : join(homedir(), ".local/state"), "heeler/token");
}

/** The user id of this process. */
export function ownUid(): number {
  const uid = process.geteuid?.();
  if (uid === undefined) {
    throw new AddressError("NO_DEFAULT", "this system has no default socket: set HEELER_ADDR");
  }
  return uid;
}

/** Refuses a directory that another user can enter. A directory that does not exist is accepted. */
function checkPrivate(dir: string, uid: number): void {
  let found;
  try {
    found = lstatSync(dir, { throwIfNoEntry: false });
  } catch (error) {
    throw new AddressError("NO_DEFAULT", `cannot read the permissions of ${dir}`, { cause: error });
  }
  if (found === undefined) {
    return;
  }
  if (!found.isDirectory() || found.uid !== uid || (found.mode & 0o077) !== 0) {
    throw new AddressError(
      "NOT_PRIVATE",
      `${dir} is not a directory that only user ${uid.toString()} can enter: ` +
        "remove it, or set XDG_RUNTIME_DIR",
    );
  }
}
