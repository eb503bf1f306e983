/** The transport: HTTP/2 on one connection, with a token over TCP. */
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";

import { type Address, hostAndPort } from "./address.js";
import { authorities, type Credentials, tokenFor } from "./credentials.js";
import { toHeelerError } from "./failure.js";
import { BackgroundTasks } from "../gen/heeler/v1/index.js";
import { openSocket } from "./socket.js";

/** The generated stub. */
export type Stub = Client<typeof BackgroundTasks>;

/** Detects a machine that disappeared while calls are open. */
const PING = { pingIntervalMs: 30_000, pingTimeoutMs: 20_000 };

/** One connection. After a break, the next call opens it again. */
export class Transport {
  readonly stub: Stub;
  readonly #sessions: Http2SessionManager;
  #closed = false;

  constructor(
    readonly address: Address,
    credentials: Credentials,
  ) {
    const baseUrl = urlOf(address);
    const token = tokenFor(address, credentials);
    const ca = address.kind === "tls" ? authorities(credentials) : undefined;
    this.#sessions = new Http2SessionManager(baseUrl, address.kind === "unix" ? {} : PING, {
      createConnection: () => openSocket(address, ca),
    });
    this.stub = createClient(
      BackgroundTasks,
      createGrpcTransport({
        baseUrl,
        sessionManager: this.#sessions,
        interceptors: token === undefined ? [] : [withToken(token)],
        // Compression costs more than it saves on a local socket.
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

  /** Ends the connection and every call in progress. */
  close(): void {
    this.#closed = true;
    this.#sessions.abort();
  }
}

/** The base URL. HTTP/2 requires a host, which a Unix socket ignores. */
function urlOf(address: Address): string {
  switch (address.kind) {
    case "unix":
      return "http://localhost";
    case "tcp":
      return `http://${hostAndPort(address)}`;
    case "tls":
      return `https://${hostAndPort(address)}`;
  }
}

/** Sends a token with each call. */
function withToken(token: string): Interceptor {
  return (next) => async (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return await next(request);
  };
}
