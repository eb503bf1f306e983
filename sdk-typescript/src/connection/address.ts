/** The address of a daemon: parsed and checked here, once. This module opens no connection. */
import { BlockList, isIP, isIPv6 } from "node:net";
import { isAbsolute } from "node:path";

import { AddressError } from "../errors.js";
import { defaultSocket } from "./paths.js";

/** The environment variable that overrides the default address. */
export const ADDRESS_ENV = "HEELER_ADDR";

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/** The size of a Unix socket address without its final NUL. */
const MAX_PATH_BYTES = 107;

/** The address of a daemon. */
export type Address = UnixAddress | TcpAddress;

/** A Unix socket. */
export interface UnixAddress {
  readonly kind: "unix";
  /** An absolute path. */
  readonly path: string;
}

/** A host and port: unencrypted and on loopback only, or with TLS. */
export interface TcpAddress {
  readonly kind: "tcp" | "tls";
  /** A name, or an IP address without brackets. */
  readonly host: string;
  readonly port: number;
}

/**
 * Parses `unix:/absolute/path` or `unix:///absolute/path`, `tcp:HOST:PORT` on loopback, or
 * `tls:HOST:PORT`.
 */
export function parseAddress(text: string): Address {
  const path = /^unix:(?:\/\/)?(?<path>.*)$/su.exec(text)?.groups?.["path"];
  if (path !== undefined) {
    return unixAddress(path);
  }
  const remote = /^(?<kind>tcp|tls):(?<rest>.*)$/su.exec(text)?.groups;
  if (remote !== undefined) {
    return tcpAddress(remote["kind"] === "tcp" ? "tcp" : "tls", remote["rest"] ?? "");
  }
  throw new AddressError(
    "UNKNOWN_SCHEME",
    `\`${text}\` is not an address: write unix:/absolute/path, tcp:HOST:PORT or tls:HOST:PORT`,
  );
}

/** The address in `HEELER_ADDR`, else the calling user's own socket. */
export function defaultAddress(): Address {
  const given = process.env[ADDRESS_ENV];
  return given === undefined || given === "" ? unixAddress(defaultSocket()) : parseAddress(given);
}

/** True for the address in `HEELER_ADDR`, which inside of a task is that of the daemon that runs it. */
export function isFromEnvironment(address: Address): boolean {
  const given = process.env[ADDRESS_ENV] ?? "";
  if (given === "") {
    return false;
  }
  try {
    return formatAddress(parseAddress(given)) === formatAddress(address);
  } catch {
    return false;
  }
}

/** The text that `parseAddress` parses. */
export function formatAddress(address: Address): string {
  return address.kind === "unix"
    ? `unix:${address.path}`
    : `${address.kind}:${hostAndPort(address)}`;
}

/** The host and port in the form of a URL. */
export function hostAndPort({ host, port }: TcpAddress): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port.toString()}`;
}

/** True if only this machine can reach the address. */
export function isLoopback({ host }: TcpAddress): boolean {
  return isIP(host) === 0
    ? host.toLowerCase() === "localhost"
    : LOOPBACK.check(host, isIPv6(host) ? "ipv6" : "ipv4");
}

/** The command that starts a daemon at an address. */
export function startCommand(address: Address): string {
  switch (address.kind) {
    case "unix":
      return isOwnSocket(address)
        ? "heeler serve"
        : `heeler serve --listen ${formatAddress(address)}`;
    case "tcp":
      return `heeler serve --listen ${formatAddress(address)}`;
    case "tls": {
      const listen = `tcp:0.0.0.0:${address.port.toString()}`;
      return `heeler serve --listen ${listen} --tls-cert FILE --tls-key FILE`;
    }
  }
}

function isOwnSocket(address: UnixAddress): boolean {
  try {
    return address.path === defaultSocket();
  } catch {
    return false;
  }
}

function tcpAddress(kind: "tcp" | "tls", rest: string): TcpAddress {
  const found = /^(?:\[(?<v6>[^\]]+)\]|(?<name>[\w.-]+)):(?<port>\d{1,5})$/u.exec(rest)?.groups;
  const host = found?.["v6"] ?? found?.["name"];
  const port = Number(found?.["port"]);
  const usable = host !== undefined && (found?.["v6"] === undefined || isIPv6(host));
  if (!usable || !(port > 0 && port < 65_536)) {
    throw new AddressError(
      "NO_HOST_AND_PORT",
      `\`${kind}:${rest}\` has no host and port: write ${kind}:HOST:PORT, ` +
        `e.g. ${kind}:127.0.0.1:7117 or ${kind}:[::1]:7117`,
    );
  }
  const address: TcpAddress = { kind, host, port };
  if (kind === "tcp" && !isLoopback(address)) {
    throw new AddressError(
      "NOT_LOOPBACK",
      `\`${kind}:${rest}\` is not on loopback, and tcp: is not encrypted: write tls:HOST:PORT`,
    );
  }
  return address;
}

function unixAddress(path: string): UnixAddress {
  if (!isAbsolute(path)) {
    throw new AddressError(
      "RELATIVE_PATH",
      `the socket path \`${path}\` is not absolute: write unix:/absolute/path`,
    );
  }
  if (path.includes("\0")) {
    throw new AddressError(
      "NUL",
      `the socket path ${JSON.stringify(path)} contains a NUL character`,
    );
  }
  const bytes = Buffer.byteLength(path);
  if (bytes > MAX_PATH_BYTES) {
    throw new AddressError(
      "PATH_TOO_LONG",
      `the socket path \`${path}\` has ${bytes.toString()} bytes; ` +
        `the limit is ${MAX_PATH_BYTES.toString()}`,
    );
  }
  return { kind: "unix", path };
}
