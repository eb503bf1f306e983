/** Where a daemon listens: parsed once, so that no later code meets a bad address. It opens nothing. */
import { isAbsolute } from "node:path";

import { AddressError } from "./errors.js";
import { defaultSocket } from "./paths.js";

/** The environment variable that overrides the default address. */
export const ADDRESS_ENV = "HEELER_ADDR";

/** What a socket address has room for, less its closing NUL. */
const MAX_PATH_BYTES = 107;

/** The address of a daemon. Other kinds may follow: look at `kind` first. */
export type Address = UnixAddress;

/** A Unix socket. */
export interface UnixAddress {
  readonly kind: "unix";
  /** Its absolute path. */
  readonly path: string;
}

/** Reads `unix:/absolute/path`, also in the spelling `unix:///absolute/path`. */
export function parseAddress(text: string): Address {
  const path = /^unix:(?:\/\/)?(?<path>.*)$/su.exec(text)?.groups?.["path"];
  if (path === undefined) {
    throw new AddressError(
      "UNKNOWN_SCHEME",
      `\`${text}\` is no address: write unix:/absolute/path`,
    );
  }
  return unixAddress(path);
}

/** What `HEELER_ADDR` says, else the calling user's own socket. */
export function defaultAddress(): Address {
  const given = process.env[ADDRESS_ENV];
  return given === undefined || given === "" ? unixAddress(defaultSocket()) : parseAddress(given);
}

/** The address as `parseAddress` reads it. */
export function formatAddress(address: Address): string {
  return `unix:${address.path}`;
}

/** The command that would start a daemon there. */
export function startCommand(address: Address): string {
  return isOwnSocket(address) ? "heeler serve" : `heeler serve --listen ${formatAddress(address)}`;
}

function isOwnSocket(address: Address): boolean {
  try {
    return address.path === defaultSocket();
  } catch {
    return false;
  }
}

function unixAddress(path: string): UnixAddress {
  if (!isAbsolute(path)) {
    throw new AddressError(
      "RELATIVE_PATH",
      `the socket path \`${path}\` is not absolute: write unix:/absolute/path`,
    );
  }
  if (path.includes("\0")) {
    throw new AddressError("NUL", `the socket path ${JSON.stringify(path)} contains a NUL`);
  }
  const bytes = Buffer.byteLength(path);
  if (bytes > MAX_PATH_BYTES) {
    throw new AddressError(
      "PATH_TOO_LONG",
      `the socket path \`${path}\` has ${bytes.toString()} bytes, ` +
        `and at most ${MAX_PATH_BYTES.toString()} fit`,
    );
  }
  return { kind: "unix", path };
}
