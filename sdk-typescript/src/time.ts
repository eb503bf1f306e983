/** Between protobuf's times and JavaScript's: spans are milliseconds, moments are Dates. */
import { create } from "@bufbuild/protobuf";
import {
  type Duration,
  DurationSchema,
  type Timestamp,
  timestampDate,
} from "@bufbuild/protobuf/wkt";

/** The longest span that a protobuf Duration may have: about 10,000 years. */
const MAX_SECONDS = 315_576_000_000;

/** The longest that a timer of Node's can run; a longer one would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** A span for a request. One that is too long, such as Infinity, becomes the longest there is. */
export function toDuration(field: string, ms: number): Duration {
  checkNumber(field, ms);
  const seconds = Math.trunc(ms / 1000);
  if (Math.abs(seconds) >= MAX_SECONDS) {
    return create(DurationSchema, { seconds: BigInt(Math.sign(seconds) * MAX_SECONDS) });
  }
  const nanos = Math.round((ms - seconds * 1000) * 1_000_000);
  return create(DurationSchema, { seconds: BigInt(seconds), nanos });
}

/** As `toDuration`, for an option that may be absent. */
export function toOptionalDuration(field: string, ms: number | undefined): Duration | undefined {
  return ms === undefined ? undefined : toDuration(field, ms);
}

/** A moment from an answer; the epoch if there is none. */
export function toDate(timestamp: Timestamp | undefined): Date {
  return timestamp === undefined ? new Date(0) : timestampDate(timestamp);
}

/** Refuses what is no number, by the option's name: the daemon could not be told of it. */
export function checkNumber(field: string, value: number): void {
  if (typeof value !== "number" || Number.isNaN(value)) {
    throw new TypeError(`${field} must be a number of milliseconds, not ${String(value)}`);
  }
}

/** Rests, unless or until the signal aborts; then it throws the signal's reason. */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const aborted = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(
      () => {
        signal?.removeEventListener("abort", aborted);
        resolve();
      },
      Math.min(ms, LONGEST_TIMER_MS),
    );
    signal?.addEventListener("abort", aborted, { once: true });
  });
}

/** How long a timer has to run for this; undefined: for longer than any timer can. */
export function timerMs(ms: number): number | undefined {
  return ms > LONGEST_TIMER_MS ? undefined : ms;
}
