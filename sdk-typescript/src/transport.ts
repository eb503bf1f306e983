/** The transport: HTTP/2 over a Unix socket that belongs to somebody who is trusted. */
import { statSync } from "node:fs";
import { createConnection, Socket } from "node:net";

import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";

import type { Address } from "./address.js";
import { toHeelerError } from "./failure.js";
import { BackgroundTasks } from "./gen/heeler/v1/background_tasks_pb.js";
import { ownUid } from "./paths.js";

/** The generated stub. */
export type Stub = Client<typeof BackgroundTasks>;

/** HTTP/2 wants an authority; the connector does not look at it. */
const AUTHORITY = "http://localhost";

/** One connection, which comes back by itself when it is needed after a break. */
export class Transport {
  readonly stub: Stub;
  readonly #sessions: Http2SessionManager;
  #closed = false;

  constructor(readonly address: Address) {
    this.#sessions = new Http2SessionManager(
      AUTHORITY,
      {},
      { createConnection: () => openSocket(address.path) },
    );
    this.stub = createClient(
      BackgroundTasks,
      createGrpcTransport({
        baseUrl: AUTHORITY,
        sessionManager: this.#sessions,
        // A socket of this machine is faster than any compression.
        acceptCompression: [],
      }),
    );
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Connects now. */
  async open(): Promise<void> {
    if ((await this.#sessions.connect()) === "error") {
      throw toHeelerError(this.#sessions.error(), this.address);
    }
  }

  /** Ends the connection, and with it every call under way. */
  close(): void {
    this.#closed = true;
    this.#sessions.abort();
  }
}

function openSocket(path: string): Socket {
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
