/**
 * The input of a task as a stream of Node. A write is done when the task has the bytes, so a task that does
 * not read slows its writer down. Each write says at which offset it begins: after a crash of the daemon it
 * is repeated, and no byte is lost or written twice.
 */
// The declarations of this module need Node's types, also in a project that does not list them.
/// <reference types="node" preserve="true" />
import { randomUUID } from "node:crypto";
import { addAbortSignal, Writable } from "node:stream";

import { pause } from "../connection/time.js";
import { RefusedError } from "../errors.js";
import type { WriteInputResponse } from "../gen/heeler/v1/index.js";
import type { WriteInputOptions } from "../options/requests.js";

/** Bytes in one call. The contract allows 1 MiB. */
const CALL_BYTES = 256 * 1024;

/** The longest wait of one call for room. It is repeated after that. */
const WAIT_MS = 60_000;

/** Time between two calls of which the first found no room and did not wait for it. */
const PAUSE_MS = 20;

/** The options of `task.input`. */
export interface InputStreamOptions extends Pick<WriteInputOptions, "writerId" | "takeOver"> {
  /** Continues at this offset, such as `bytesTaken` of an earlier stream. By default at the end. */
  readonly offset?: bigint | undefined;
  /** Maximum time without a daemon; then the stream fails. By default no limit. */
  readonly giveUpAfterMs?: number | undefined;
  /** Destroys the stream. The input stays open. */
  readonly signal?: AbortSignal | undefined;
  /** Bytes that the stream buffers before `write` returns false. */
  readonly highWaterMark?: number | undefined;
}

/** Makes one call. */
type WriteCall = (options: WriteInputOptions) => Promise<WriteInputResponse>;

/**
 * The stdin or the terminal of a task. `end` closes it: the task reads end-of-file. `destroy` leaves it
 * open. `Writable.toWeb` makes a WritableStream of it.
 *
 * One writer has the input, from the moment its stream is open: another one is refused with INPUT_HELD
 * unless it takes over, and then this one fails with INPUT_TAKEN_OVER.
 */
export class TaskInput extends Writable {
  readonly #call: WriteCall;
  readonly #abort = new AbortController();
  readonly #takeOver: boolean;
  /** The writer's id. */
  readonly writerId: string;
  #offset: bigint | undefined;

  /** @internal Use `task.input()`. */
  constructor(call: WriteCall, options: InputStreamOptions) {
    const { writerId = randomUUID(), takeOver = false, offset, signal, highWaterMark } = options;
    super(highWaterMark === undefined ? {} : { highWaterMark });
    this.#call = call;
    this.writerId = writerId;
    this.#takeOver = takeOver;
    this.#offset = offset;
    if (signal !== undefined) {
      addAbortSignal(signal, this);
    }
  }

  /** The number of bytes that the task was given, from all writers. */
  get bytesTaken(): bigint {
    return this.#offset ?? 0n;
  }

  /**
   * Finds the end of the input, and takes it over if asked to. A free input is claimed: what another
   * writer put there before the first write would be taken for bytes of this stream.
   */
  override _construct(done: (error?: Error | null) => void): void {
    settle(done, async () => {
      let found = await this.#write({ takeOver: this.#takeOver });
      if (found.writerId === "" && this.writerId !== "") {
        found = await this.#write({ takeOver: true });
      }
      this.#offset ??= found.offset;
    });
  }

  override _write(
    chunk: Buffer,
    _encoding: BufferEncoding,
    done: (error?: Error | null) => void,
  ): void {
    settle(done, async () => {
      await this.#writeAll(chunk);
    });
  }

  /** Writes what was buffered meanwhile in as few calls as possible. */
  override _writev(
    chunks: readonly { readonly chunk: Buffer }[],
    done: (error?: Error | null) => void,
  ): void {
    settle(done, async () => {
      await this.#writeAll(Buffer.concat(chunks.map(({ chunk }) => chunk)));
    });
  }

  override _final(done: (error?: Error | null) => void): void {
    settle(done, async () => {
      try {
        await this.#write({ offset: this.bytesTaken, close: true });
      } catch (error) {
        // The task has closed it, or is gone: there is nothing left to close.
        if (!(error instanceof RefusedError) || !CLOSED.has(error.reason)) {
          throw error;
        }
      }
    });
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#abort.abort(error ?? undefined);
    done(error);
  }

  async #writeAll(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      const data = bytes.subarray(at, at + CALL_BYTES);
      const request = { offset: this.bytesTaken, data, waitMs: WAIT_MS };
      const { takenBytes } = await this.#write(request);
      this.#offset = this.bytesTaken + BigInt(takenBytes);
      at += takenBytes;
      if (takenBytes === 0) {
        await pause(PAUSE_MS, this.#abort.signal);
      }
    }
  }

  async #write(request: WriteInputOptions): Promise<WriteInputResponse> {
    const { signal } = this.#abort;
    return await this.#call({ ...request, writerId: this.writerId, signal });
  }
}

const CLOSED: ReadonlySet<string | undefined> = new Set(["INPUT_CLOSED", "TASK_FINISHED"]);

/** Carries out an action, and reports its end to the stream. */
function settle(done: (error?: Error | null) => void, action: () => Promise<void>): void {
  action().then(
    () => {
      done();
    },
    (error: unknown) => {
      done(error as Error);
    },
  );
}
