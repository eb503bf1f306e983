/** Where a daemon listens: parsed once, so that no later code meets a bad address. It opens nothing. */
import { BlockList, isIP, isIPv6 } from "node:net";
import { isAbsolute } from "node:path";

import { AddressError } from "./errors.js";
import { defaultSocket } from "./paths.js";

/** The environment variable that overrides the default address. */
export const ADDRESS_ENV = "HEELER_ADDR";

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/** What a socket address has room for, less its closing NUL. */
const MAX_PATH_BYTES = 107;

/** The address of a daemon. */
export type Address = UnixAddress | TcpAddress;

/** A Unix socket. */
export interface UnixAddress {
  readonly kind: "unix";
  /** Its absolute path. */
  readonly path: string;
}

/** A port of a machine: in the clear, on loopback alone, or by TLS. */
export interface TcpAddress {
  readonly kind: "tcp" | "tls";
  /** A name, or a number without brackets. */
  readonly host: string;
  readonly port: number;
}

/**
 * Reads `unix:/absolute/path`, also in the spelling `unix:///absolute/path`; `tcp:HOST:PORT` on this
 * machine's loopback; or `tls:HOST:PORT`.
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
    `\`${text}\` is no address: write unix:/absolute/path, tcp:HOST:PORT or tls:HOST:PORT`,
  );
}

/** What `HEELER_ADDR` says, else the calling user's own socket. */
export function defaultAddress(): Address {
  const given = process.env[ADDRESS_ENV];
  return given === undefined || given === "" ? unixAddress(defaultSocket()) : parseAddress(given);
}

/** The address as `parseAddress` reads it. */
export function formatAddress(address: Address): string {
  return address.kind === "unix"
    ? `unix:${address.path}`
    : `${address.kind}:${hostAndPort(address)}`;
}

/** The host and the port as a URL has them. */
export function hostAndPort({ host, port }: TcpAddress): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port.toString()}`;
}

/** Whether only this machine can reach it. */
export function isLoopback({ host }: TcpAddress): boolean {
  return isIP(host) === 0
    ? host.toLowerCase() === "localhost"
    : LOOPBACK.check(host, isIPv6(host) ? "ipv6" : "ipv4");
}

/** The command that would start a daemon there. */
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
      `\`${kind}:${rest}\` names no host and port: write ${kind}:HOST:PORT, ` +
        `e.g. ${kind}:127.0.0.1:7117 or ${kind}:[::1]:7117`,
    );
  }
  const address: TcpAddress = { kind, host, port };
  if (kind === "tcp" && !isLoopback(address)) {
    throw new AddressError(
      "NOT_LOOPBACK",
      `\`${kind}:${rest}\` is not on this machine's loopback, and tcp: is in the clear: ` +
        "write tls:HOST:PORT",
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
