/** The transport: HTTP/2 on a connection that comes back by itself, with a token where one is wanted. */
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";

import { type Address, hostAndPort } from "./address.js";
import { authorities, type Credentials, tokenFor } from "./credentials.js";
import { toHeelerError } from "./failure.js";
import { BackgroundTasks } from "./gen/heeler/v1/background_tasks_pb.js";
import { openSocket } from "./socket.js";

/** The generated stub. */
export type Stub = Client<typeof BackgroundTasks>;

/** A machine that is gone says no goodbye: it is asked while calls are open. */
const ASK = { pingIntervalMs: 30_000, pingTimeoutMs: 20_000 };

/** One connection, which comes back by itself when it is needed after a break. */
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
    this.#sessions = new Http2SessionManager(baseUrl, address.kind === "unix" ? {} : ASK, {
      createConnection: () => openSocket(address, ca),
    });
    this.stub = createClient(
      BackgroundTasks,
      createGrpcTransport({
        baseUrl,
        sessionManager: this.#sessions,
        interceptors: token === undefined ? [] : [showing(token)],
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

/** HTTP/2 wants an authority; a Unix socket does not look at it. */
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

/** Shows a token with each call. */
function showing(token: string): Interceptor {
  return (next) => async (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return await next(request);
  };
}
