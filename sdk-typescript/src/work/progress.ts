/**
 * The progress of a worker. Values are checked and texts cut before they are sent: the daemon would end
 * the stream of a worker that sends a bad one.
 */
import { type ProgressUpdate, ProgressUpdateSchema } from "../gen/heeler/v1/index.js";
import { toMessage } from "../options/message.js";
import type { BlockOptions, ProgressOptions } from "../options/requests.js";
import { cut, limited } from "./text.js";

/** The lengths at which the daemon cuts, in bytes. */
const TEXT_BYTES = 4096;
const NAME_BYTES = 256;
const INTENT_BYTES = 1024;

/** Blocks in one message: about 1 MiB at most. The contract allows 1000, and 3 MiB. */
const BLOCKS_PER_UPDATE = 240;

const MAX_COUNTS = 32;
const COUNT_NAME_BYTES = 64;
const MAX_UINT64 = 2n ** 64n - 1n;

/** Reports the progress of a task. Each method resolves as `Work.report` does. */
export class Reporter {
  readonly #report: (options: ProgressOptions) => Promise<void>;

  /** @internal Use `work.progress`. */
  constructor(report: (options: ProgressOptions) => Promise<void>) {
    this.#report = report;
  }

  /** Text that the worker has written. */
  async text(text: string): Promise<void> {
    await this.#block({ kind: "text", text });
  }

  /** The worker's reasoning. */
  async thought(text: string): Promise<void> {
    await this.#block({ kind: "thought", text });
  }

  /** The call of a tool, with its arguments as text. */
  async toolCall(name: string, text: string): Promise<void> {
    await this.#block({ kind: "toolCall", name, text });
  }

  /** The result of a tool. */
  async toolResult(name: string, text: string): Promise<void> {
    await this.#block({ kind: "toolResult", name, text });
  }

  /** Anything else. */
  async note(text: string): Promise<void> {
    await this.#block({ kind: "note", text });
  }

  /** The present activity in one line. Empty: none. */
  async intent(intent: string): Promise<void> {
    await this.#report({ intent });
  }

  /** The part that is done, from 0 to 100. */
  async percent(percent: number): Promise<void> {
    await this.#report({ percent });
  }

  /** Counters by name. They replace all earlier ones. */
  async counts(counts: NonNullable<ProgressOptions["counts"]>): Promise<void> {
    await this.#report({ counts });
  }

  async #block(block: BlockOptions): Promise<void> {
    await this.#report({ blocks: [block] });
  }
}

/** The messages of a change: one, or several for many blocks. */
export function toUpdates(options: ProgressOptions): ProgressUpdate[] {
  const { blocks = [], intent, percent, counts, ...unknown } = options;
  const rest = {
    ...unknown,
    intent: intent === undefined ? undefined : cut("intent", intent, INTENT_BYTES).text,
    percent: checkPercent(percent),
    counts: checkCounts(counts),
  };
  const checked = [...blocks].map(checkBlock);
  const updates = [toMessage(ProgressUpdateSchema, rest)];
  for (let at = 0; at < checked.length; at += BLOCKS_PER_UPDATE) {
    const part = { blocks: checked.slice(at, at + BLOCKS_PER_UPDATE) };
    if (at === 0) {
      updates[0] = toMessage(ProgressUpdateSchema, { ...rest, ...part });
    } else {
      updates.push(toMessage(ProgressUpdateSchema, part));
    }
  }
  return updates;
}

function checkBlock(block: BlockOptions, index: number): object {
  const path = `blocks[${index.toString()}]`;
  const { text = "", name = "", textBytes, ...rest } = block;
  const { text: kept, bytes } = cut(`${path}.text`, text, TEXT_BYTES);
  return {
    ...rest,
    text: kept,
    name: cut(`${path}.name`, name, NAME_BYTES).text,
    textBytes: textBytes === undefined ? bytes : checkCount(`${path}.textBytes`, textBytes),
  };
}

function checkPercent(percent: number | undefined): number | undefined {
  if (percent !== undefined && !(Number.isInteger(percent) && percent >= 0 && percent <= 100)) {
    throw new RangeError(`percent must be a whole number from 0 to 100, not ${String(percent)}`);
  }
  return percent;
}

function checkCounts(counts: ProgressOptions["counts"]): Record<string, bigint> | undefined {
  if (counts === undefined) {
    return undefined;
  }
  const entries = Object.entries(counts);
  if (entries.length > MAX_COUNTS) {
    throw new RangeError(`counts has more than ${MAX_COUNTS.toString()} counters`);
  }
  return Object.fromEntries(
    entries.map(([name, count]) => [
      limited("the name of a counter", name, COUNT_NAME_BYTES),
      checkCount(`counts.${name}`, count),
    ]),
  );
}

function checkCount(option: string, count: number | bigint): bigint {
  const isWhole = typeof count === "bigint" || Number.isSafeInteger(count);
  if (!isWhole || count < 0 || count > MAX_UINT64) {
    throw new RangeError(`${option} must be a whole number of at least 0, not ${String(count)}`);
  }
  return BigInt(count);
}
