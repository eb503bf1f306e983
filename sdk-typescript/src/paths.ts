/**
 * Where a user's daemon has its socket and its token: the same answer as the daemon's own.
 *
 * Nothing is created here. A directory in a place that others may write to is used only if it is this
 * user's alone: whoever listens there is handed commands to run.
 */
import { lstatSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";

import { AddressError } from "./errors.js";

/** Where the fallbacks are; elsewhere in tests. */
export interface Places {
  readonly runUser: string;
  readonly tmp: string;
}

const SYSTEM: Places = { runUser: "/run/user", tmp: "/tmp" };

/**
 * The socket of this user's daemon: `$XDG_RUNTIME_DIR/heeler/heeler.sock`; without that variable the
 * same under `/run/user/<uid>` where this user owns it, else `/tmp/heeler-<uid>/heeler.sock`.
 */
export function defaultSocket(
  runtimeDir = process.env["XDG_RUNTIME_DIR"],
  uid = ownUid(),
  places = SYSTEM,
): string {
  // The XDG specification has relative paths ignored.
  if (runtimeDir !== undefined && isAbsolute(runtimeDir)) {
    return join(runtimeDir, "heeler/heeler.sock");
  }
  const run = join(places.runUser, String(uid));
  const found = statSync(run, { throwIfNoEntry: false });
  if (found?.isDirectory() === true && found.uid === uid) {
    return join(run, "heeler/heeler.sock");
  }
  const dir = join(places.tmp, `heeler-${uid.toString()}`);
  checkPrivate(dir, uid);
  return join(dir, "heeler.sock");
}

/** Where this user's daemon keeps the token that callers over TCP show. */
export function defaultTokenFile(): string {
  const given = process.env["HEELER_STATE_DIR"] ?? "";
  if (given !== "") {
    return join(resolve(given), "token");
  }
  const state = process.env["XDG_STATE_HOME"] ?? "";
  return join(isAbsolute(state) ? state : join(homedir(), ".local/state"), "heeler/token");
}

/** The calling user, by number. */
export function ownUid(): number {
  const uid = process.geteuid?.();
  if (uid === undefined) {
    throw new AddressError("NO_DEFAULT", "this system has no default socket: set HEELER_ADDR");
  }
  return uid;
}

/** Anybody may have made a directory of that name in `/tmp`; one that is not there yet is fine. */
function checkPrivate(dir: string, uid: number): void {
  let found;
  try {
    found = lstatSync(dir, { throwIfNoEntry: false });
  } catch (error) {
    throw new AddressError("NO_DEFAULT", `cannot look at ${dir}`, { cause: error });
  }
  if (found === undefined) {
    return;
  }
  if (!found.isDirectory() || found.uid !== uid || (found.mode & 0o077) !== 0) {
    throw new AddressError(
      "NOT_PRIVATE",
      `${dir} is not a directory that only user ${uid.toString()} may enter: ` +
        "remove it, or set XDG_RUNTIME_DIR",
    );
  }
}
