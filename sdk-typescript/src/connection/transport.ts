/** The transport: HTTP/2 on one connection, with a token over TCP. */
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";

import { complete } from "../answers.js";
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
  /** The end of the latest connection. */
  #socketClosed: Promise<void> = Promise.resolve();

  constructor(
    readonly address: Address,
    credentials: Credentials,
  ) {
    const baseUrl = urlOf(address);
    const token = tokenFor(address, credentials);
    const ca = address.kind === "tls" ? authorities(credentials) : undefined;
    this.#sessions = new Http2SessionManager(baseUrl, address.kind === "unix" ? {} : PING, {
      createConnection: () => {
        const socket = openSocket(address, ca);
        this.#socketClosed = new Promise((resolve) =>
          socket.once("close", () => {
            resolve();
          }),
        );
        return socket;
      },
    });
    this.stub = createClient(
      BackgroundTasks,
      createGrpcTransport({
        baseUrl,
        sessionManager: this.#sessions,
        interceptors: [completing, ...(token === undefined ? [] : [withToken(token)])],
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

  /** As `close`, and waits until the socket is closed. */
  async closed(): Promise<void> {
    this.close();
    await this.#socketClosed;
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

/** Completes each message that is received. */
const completing: Interceptor = (next) => async (request) => {
  const response = await next(request);
  const { output } = response.method;
  if (!response.stream) {
    complete(output, response.message);
    return response;
  }
  return { ...response, message: completed(output, response.message) };
};

async function* completed<D extends DescMessage>(
  type: D,
  messages: AsyncIterable<MessageShape<D>>,
): AsyncGenerator<MessageShape<D>, void, undefined> {
  for await (const message of messages) {
    complete(type, message);
    yield message;
  }
}

/** Sends a token with each call. */
function withToken(token: string): Interceptor {
  return (next) => async (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return await next(request);
  };
}
