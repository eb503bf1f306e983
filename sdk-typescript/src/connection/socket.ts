/** Opens the connection below HTTP/2: a Unix socket with a trusted owner, TCP, or TLS. */
import { statSync } from "node:fs";
import { createConnection, isIP, Socket } from "node:net";
import { connect as connectTls } from "node:tls";

import type { Address, TcpAddress } from "./address.js";
import { ownUid } from "./paths.js";

/** Maximum time for a connection, including the TLS handshake. */
const CONNECT_LIMIT_MS = 10_000;

/** Opens a connection; `ca` has the authorities to trust, undefined for those that Node trusts. */
export function openSocket(address: Address, ca: string | undefined): Socket {
  switch (address.kind) {
    case "unix":
      return openUnix(address.path);
    case "tcp": {
      const { host, port } = address;
      return bounded(createConnection({ host, port, noDelay: true }), "connect");
    }
    case "tls":
      return bounded(openTls(address, ca), "secureConnect");
  }
}

function openTls({ host, port }: TcpAddress, ca: string | undefined): Socket {
  const socket = connectTls({
    host,
    port,
    // An IP address is not valid as a server name; the certificate is checked in any case.
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(ca === undefined ? {} : { ca }),
    ALPNProtocols: ["h2"],
  });
  return socket.setNoDelay(true);
}

/** Limits the time to connect, and marks an error before the connection as a failure to connect. */
function bounded(socket: Socket, event: "connect" | "secureConnect"): Socket {
  const failed = (error: Error): void => {
    clearTimeout(timer);
    Object.assign(error, { syscall: "connect" });
  };
  const timer = setTimeout(() => {
    const text = `no answer within ${CONNECT_LIMIT_MS.toString()} ms`;
    socket.destroy(Object.assign(new Error(text), { code: "ETIMEDOUT" }));
  }, CONNECT_LIMIT_MS);
  socket.once("error", failed);
  socket.once(event, () => {
    clearTimeout(timer);
    socket.off("error", failed);
  });
  return socket;
}

function openUnix(path: string): Socket {
  const refusal = checkOwner(path);
  return refusal === undefined ? createConnection(path) : new Socket().destroy(refusal);
}

/**
 * Refuses a socket of another user, because requests may contain secrets. Root's socket is accepted, and
 * root accepts any.
 */
function checkOwner(path: string): Error | undefined {
  const own = ownUid();
  let found;
  try {
    found = statSync(path);
  } catch {
    // Connecting fails in the same way and reports it.
    return undefined;
  }
  if (own === 0 || found.uid === own || found.uid === 0) {
    return undefined;
  }
  const text = `the socket belongs to user ${found.uid.toString()}, not to user ${own.toString()}`;
  return Object.assign(new Error(text), { code: "EACCES", syscall: "connect" });
}
