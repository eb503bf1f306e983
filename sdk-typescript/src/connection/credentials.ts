/**
 * The token and the certificate authority for a daemon over TCP. A Unix socket needs neither: the kernel
 * identifies both ends.
 */
import { readFileSync } from "node:fs";

import { type Address, isFromEnvironment, isLoopback } from "./address.js";
import { CredentialsError } from "../errors.js";
import { defaultTokenFile } from "./paths.js";

/** The environment variable that names the file with the token. */
const TOKEN_FILE_ENV = "HEELER_TOKEN_FILE";
/** The environment variable with the token of the task that the program runs in. The daemon sets it. */
const TASK_TOKEN_ENV = "HEELER_TOKEN";
/** The environment variable that names the file with the certificate of the authority. */
const TLS_CA_ENV = "HEELER_TLS_CA";

/** The credentials for a daemon over TCP. */
export interface Credentials {
  /** The token. */
  readonly token?: string | undefined;
  /**
   * The file with the token. By default the file that `HEELER_TOKEN_FILE` names; else, on loopback and for the
   * address in `HEELER_ADDR`, the token of the task that the program runs in (`HEELER_TOKEN`); else, on
   * loopback, the file of the calling user's own daemon.
   */
  readonly tokenFile?: string | undefined;
  /**
   * The file, in PEM form, with the certificate of the authority to trust over TLS. By default the file
   * that `HEELER_TLS_CA` names, else the authorities that Node trusts.
   */
  readonly tlsCa?: string | undefined;
}

/** The token for an address, if there is one. */
export function tokenFor(address: Address, given: Credentials): string | undefined {
  if (address.kind === "unix") {
    return undefined;
  }
  if (given.token !== undefined) {
    return checked(given.token);
  }
  const named = given.tokenFile ?? process.env[TOKEN_FILE_ENV] ?? "";
  if (named !== "") {
    return checked(read(named, "the token file").trim());
  }
  const ofTask = process.env[TASK_TOKEN_ENV] ?? "";
  // Only the daemon that runs the task knows its token, so no other machine gets to see it. On loopback it comes before
  // the token of the user's own daemon, which would give a task the rights of the user.
  if (ofTask !== "" && (isLoopback(address) || isFromEnvironment(address))) {
    return checked(ofTask);
  }
  return isLoopback(address) ? ownToken() : undefined;
}

/** The authorities to trust; undefined: those that Node trusts. */
export function authorities(given: Credentials): string | undefined {
  const named = given.tlsCa ?? process.env[TLS_CA_ENV] ?? "";
  if (named === "") {
    return undefined;
  }
  const text = read(named, "the certificate file");
  if (!text.includes("-----BEGIN CERTIFICATE-----")) {
    throw new CredentialsError(`${named} contains no certificate in PEM form`);
  }
  return text;
}

/** The token of the user's own daemon. If there is none, the daemon refuses the call and says what to do. */
function ownToken(): string | undefined {
  try {
    return checked(readFileSync(defaultTokenFile(), "utf8").trim());
  } catch {
    return undefined;
  }
}

function checked(token: string): string {
  if (!/^[!-~]+$/u.test(token)) {
    throw new CredentialsError("the token is empty or contains invalid characters");
  }
  return token;
}

function read(path: string, what: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new CredentialsError(`cannot read ${what} ${path}`, { cause: error });
  }
}
