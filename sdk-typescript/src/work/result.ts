/** The result of a worker. */
import {
  type WorkerResult,
  WorkerResultSchema,
  type WorkerStatus,
} from "../gen/heeler/v1/index.js";
import { toMessage } from "../options/message.js";
import type { Word } from "../options/words.js";
import { checkLength, limited } from "./text.js";

/** The limit of a result's text, and of its data. */
const MAX_BYTES = 65_536;

/** The result of a worker. */
export interface ResultOptions {
  /**
   * `ok` by default: the work is done. `failed`: it failed. `cancelled`: it was stopped before it was
   * done, and the result is what there was by then.
   */
  readonly status?: Word<typeof WorkerStatus> | undefined;
  /** The result for people and models, up to 64 KiB. */
  readonly text?: string | undefined;
  /** The result for programs, up to 64 KiB. */
  readonly data?: Uint8Array | undefined;
}

/** The value of a body: a result, its text, or nothing, which is `ok` without a text. */
// eslint-disable-next-line @typescript-eslint/no-invalid-void-type -- A body may end without `return`.
export type BodyResult = ResultOptions | string | undefined | void;

/** Builds the message of a result. Refuses one that the daemon would refuse. */
export function toResult(value: BodyResult): WorkerResult {
  const options: ResultOptions = typeof value === "object" ? value : { text: value ?? "" };
  const { status = "ok", text = "", data = new Uint8Array(), ...unknown } = options;
  if (!(data instanceof Uint8Array)) {
    throw new TypeError("the data of a result must be a Uint8Array");
  }
  checkLength("the data of a result", data.length, MAX_BYTES);
  const checked = limited("the text of a result", text, MAX_BYTES);
  return toMessage(WorkerResultSchema, { ...unknown, status, text: checked, data });
}

/** Refuses a result that cannot be delivered. */
export function checkResult(value: BodyResult): void {
  toResult(value);
}
