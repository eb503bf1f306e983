/** What a task has written, as chunks that follow it to its end. Lines are in lines.ts. */
import { create } from "@bufbuild/protobuf";

import type { CallOptions, Caller } from "./call.js";
import { choose } from "./choice.js";
import {
  type ReadOutputRequest,
  ReadOutputRequestSchema,
  type ReadOutputResponse,
} from "./gen/heeler/v1/background_tasks_pb.js";
import { type OutputChunk, type OutputStream, OutputView } from "./gen/heeler/v1/output_pb.js";
import { toDate, toOptionalDuration } from "./time.js";

/** How long one call waits for output; the iterator then asks again. */
const POLL_MS = 60_000;

/** Bytes of one stream that arrived together. */
export interface Chunk {
  /** The offset of the first byte: it means the same byte for ever. */
  readonly offset: bigint;
  /** The offset behind the last byte: keep it in order to take up reading later. */
  readonly end: bigint;
  /** Which stream they came from. */
  readonly stream: OutputStream;
  /** When they were read from the task. */
  readonly readTime: Date;
  /** The bytes. */
  readonly data: Uint8Array;
}

/** Where to begin. Not both; by default at the first byte. */
export interface OutputStart {
  /** An absolute offset, e.g. the `end` of the last chunk. */
  readonly offset?: bigint | undefined;
  /** This many bytes before the present end. */
  readonly tailBytes?: bigint | number | undefined;
}

/** What to read of a task's output, as an iterator. */
export interface OutputOptions extends OutputStart {
  /** False: only what is there now. By default to the end of the task. */
  readonly follow?: boolean | undefined;
  /** Ends the reading. */
  readonly signal?: AbortSignal | undefined;
}

/** How output is given. */
export interface ViewOptions {
  /** `text`: as valid UTF-8, cut between characters. By default `raw`: every byte as it was written. */
  readonly view?: "raw" | "text" | undefined;
}

/** What to read of a task's output, in one call. */
export interface ReadOutputOptions extends OutputStart, ViewOptions, CallOptions {
  /** At most this many bytes: 256 KiB by default. */
  readonly maxBytes?: number | undefined;
  /** How long to wait if there is nothing to read yet. By default not at all. */
  readonly waitMs?: number | undefined;
}

const VIEWS = { raw: OutputView.RAW, text: OutputView.TEXT } as const;

export async function readOutput(
  caller: Caller,
  taskId: string,
  options: ReadOutputOptions,
): Promise<ReadOutputResponse> {
  const request = create(ReadOutputRequestSchema, {
    taskId,
    start: toStart(options),
    maxBytes: options.maxBytes ?? 0,
    wait: toOptionalDuration("waitMs", options.waitMs),
    view: toView(options),
  });
  return await caller.call("always", options, (stub, call) => stub.readOutput(request, call));
}

/** The chunks from a point on. A daemon that restarts meanwhile is waited for. */
export async function* readChunks(
  caller: Caller,
  taskId: string,
  options: OutputOptions,
): AsyncGenerator<Chunk, void, undefined> {
  const follow = options.follow ?? true;
  const { signal } = options;
  let start: OutputStart = { offset: options.offset, tailBytes: options.tailBytes };
  for (;;) {
    const page = await readOutput(caller, taskId, {
      ...start,
      waitMs: follow ? POLL_MS : undefined,
      signal,
    });
    yield* toChunks(page.chunks, page.nextOffset);
    if (page.nextOffset >= page.endOffset && (page.complete || !follow)) {
      return;
    }
    start = { offset: page.nextOffset };
  }
}

export function toStart({ offset, tailBytes }: OutputStart): ReadOutputRequest["start"] {
  if (offset !== undefined && tailBytes !== undefined) {
    throw new TypeError("give either offset or tailBytes, not both");
  }
  if (tailBytes !== undefined) {
    return { case: "tailBytes", value: BigInt(tailBytes) };
  }
  return { case: "offset", value: offset ?? 0n };
}

export function toView({ view = "raw" }: ViewOptions): OutputView {
  return choose("view", VIEWS, view);
}

/** The chunks of one answer. */
export function toChunks(chunks: readonly OutputChunk[], nextOffset: bigint): Chunk[] {
  return chunks.map((chunk, index) => {
    const { content, offset, stream } = chunk;
    const readTime = toDate(chunk.readTime);
    if (content.case === "text") {
      // It may have another length than the bytes that it stands for.
      const end = chunks[index + 1]?.offset ?? nextOffset;
      return { offset, end, stream, readTime, data: Buffer.from(content.value) };
    }
    const data = content.value ?? new Uint8Array();
    return { offset, end: offset + BigInt(data.length), stream, readTime, data };
  });
}
