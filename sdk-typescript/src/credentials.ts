/**
 * What is shown to a daemon over TCP, and which authorities are believed there. Over a Unix socket
 * neither is read: the kernel says who is at each end.
 */
import { readFileSync } from "node:fs";

import { type Address, isLoopback } from "./address.js";
import { CredentialsError } from "./errors.js";
import { defaultTokenFile } from "./paths.js";

/** The environment variable that names the file with the token. */
const TOKEN_FILE_ENV = "HEELER_TOKEN_FILE";
/** The environment variable that names the file with the authority's certificate. */
const TLS_CA_ENV = "HEELER_TLS_CA";

/** How to reach a daemon over TCP. */
export interface Credentials {
  /** The token itself. */
  readonly token?: string | undefined;
  /**
   * The file with the token. By default that which `HEELER_TOKEN_FILE` names, else, on loopback, that
   * of the calling user's own daemon.
   */
  readonly tokenFile?: string | undefined;
  /**
   * The file, in PEM form, with the certificate of the authority to believe over TLS. By default that
   * which `HEELER_TLS_CA` names, else those that Node believes.
   */
  readonly tlsCa?: string | undefined;
}

/** The token to show there, if any is known. */
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
  return isLoopback(address) ? ownToken() : undefined;
}

/** The authorities to believe; undefined: those that Node does. */
export function authorities(given: Credentials): string | undefined {
  const named = given.tlsCa ?? process.env[TLS_CA_ENV] ?? "";
  if (named === "") {
    return undefined;
  }
  const text = read(named, "the certificates in");
  if (!text.includes("-----BEGIN CERTIFICATE-----")) {
    throw new CredentialsError(`there is no certificate in PEM form in ${named}`);
  }
  return text;
}

/** Without one the daemon's own refusal says what to do. */
function ownToken(): string | undefined {
  try {
    return checked(readFileSync(defaultTokenFile(), "utf8").trim());
  } catch {
    return undefined;
  }
}

function checked(token: string): string {
  if (!/^[!-~]+$/u.test(token)) {
    throw new CredentialsError("the token is empty, or has characters that no token has");
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
