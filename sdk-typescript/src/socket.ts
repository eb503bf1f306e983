/** Opens what HTTP/2 runs on: a Unix socket whose owner is trusted, a TCP connection, or TLS on one. */
import { statSync } from "node:fs";
import { createConnection, isIP, Socket } from "node:net";
import { connect as connectTls } from "node:tls";

import type { Address, TcpAddress } from "./address.js";
import { ownUid } from "./paths.js";

/** How long a machine may take to take a connection, with the handshake. */
const CONNECT_LIMIT_MS = 10_000;

/** Opens a connection; `ca` are the authorities to believe, undefined for those that Node does. */
export function openSocket(address: Address, ca: string | undefined): Socket {
  switch (address.kind) {
    case "unix":
      return openUnix(address.path);
    case "tcp": {
      const { host, port } = address;
      return watched(createConnection({ host, port, noDelay: true }), "connect");
    }
    case "tls":
      return watched(openTls(address, ca), "secureConnect");
  }
}

function openTls({ host, port }: TcpAddress, ca: string | undefined): Socket {
  const socket = connectTls({
    host,
    port,
    // A number is no name that a server could be asked for; its certificate is checked all the same.
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(ca === undefined ? {} : { ca }),
    ALPNProtocols: ["h2"],
  });
  return socket.setNoDelay(true);
}

/** Marks whatever fails before the connection is made as a failure to connect, and bounds its time. */
function watched(socket: Socket, made: "connect" | "secureConnect"): Socket {
  const failed = (error: Error): void => {
    clearTimeout(timer);
    Object.assign(error, { syscall: "connect" });
  };
  const timer = setTimeout(() => {
    const text = `no answer within ${CONNECT_LIMIT_MS.toString()} ms`;
    socket.destroy(Object.assign(new Error(text), { code: "ETIMEDOUT" }));
  }, CONNECT_LIMIT_MS);
  socket.once("error", failed);
  socket.once(made, () => {
    clearTimeout(timer);
    socket.off("error", failed);
  });
  return socket;
}

function openUnix(path: string): Socket {
  const stranger = findStranger(path);
  return stranger === undefined ? createConnection(path) : new Socket().destroy(stranger);
}

/**
 * What is sent may hold secrets: only this user's socket, or root's, may have it. Root itself may talk
 * to anybody's.
 */
function findStranger(path: string): Error | undefined {
  const own = ownUid();
  let found;
  try {
    found = statSync(path);
  } catch {
    // Connecting meets the same trouble, and tells it.
    return undefined;
  }
  if (own === 0 || found.uid === own || found.uid === 0) {
    return undefined;
  }
  const text = `the socket belongs to user ${found.uid.toString()}, not to user ${own.toString()}`;
  return Object.assign(new Error(text), { code: "EACCES", syscall: "connect" });
}
