/** One stream of Work, from its first message until it breaks. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";

import { formatAddress } from "../connection/address.js";
import type { Caller } from "../connection/call.js";
import { present, toHeelerError } from "../connection/failure.js";
import { DisconnectedError } from "../errors.js";
import {
  type WorkJoined,
  type WorkRequest,
  WorkRequestSchema,
  type WorkResponse,
} from "../gen/heeler/v1/index.js";
import type { Change } from "./change.js";

/** The first message of a stream. */
export type First = NonNullable<MessageInitShape<typeof WorkRequestSchema>["item"]>;

/** Returns the next message to send on a connection; undefined: none for now. `end`: there is no other. */
export type NextRequest = () => MessageInitShape<typeof WorkRequestSchema> | "end" | undefined;

export class Connection {
  readonly #abort = new AbortController();
  readonly #responses: AsyncIterator<WorkResponse>;
  #isJoined = false;

  private constructor(
    private readonly caller: Caller,
    first: First,
    private readonly next: NextRequest,
    /** Notified when `next` may have a message. */
    private readonly change: Change,
  ) {
    const { signal } = this.#abort;
    const responses = caller.stub.work(this.#requests(first), { signal });
    this.#responses = responses[Symbol.asyncIterator]();
  }

  /** Opens a stream. An abort of the signal ends the attempt, not the stream. */
  static async open(
    caller: Caller,
    first: First,
    stream: { readonly next: NextRequest; readonly change: Change },
    signal: AbortSignal | undefined,
  ): Promise<{ connection: Connection; joined: WorkJoined }> {
    signal?.throwIfAborted();
    caller.checkOpen();
    const connection = new Connection(caller, first, stream.next, stream.change);
    const aborted = (): void => {
      connection.close();
    };
    signal?.addEventListener("abort", aborted, { once: true });
    try {
      const { item } = await connection.receive();
      const joined = present("joined", item.case === "joined" ? item.value : undefined);
      return { connection, joined };
    } catch (error) {
      connection.close();
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener("abort", aborted);
    }
  }

  /** Lets the messages of the worker follow the first one. */
  start(): void {
    this.#isJoined = true;
    this.change.notify();
  }

  /** Returns the next response. Throws if the stream is broken. */
  async receive(): Promise<WorkResponse> {
    try {
      const next: IteratorResult<WorkResponse, undefined> = await this.#responses.next();
      if (next.value !== undefined) {
        return next.value;
      }
    } catch (thrown) {
      this.caller.checkOpen();
      throw toHeelerError(thrown, this.caller.address);
    }
    // A stream that ends without a status comes from a daemon that is closing.
    throw new DisconnectedError(formatAddress(this.caller.address));
  }

  /** Ends the stream. */
  close(): void {
    this.#abort.abort();
    this.change.notify();
  }

  async *#requests(first: First): AsyncGenerator<WorkRequest, void, undefined> {
    yield create(WorkRequestSchema, { item: first });
    while (!this.#abort.signal.aborted) {
      const request = this.#isJoined ? this.next() : undefined;
      if (request === "end") {
        return;
      }
      if (request === undefined) {
        await this.change.next();
      } else {
        yield create(WorkRequestSchema, request);
      }
    }
  }
}
