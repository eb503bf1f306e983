/** Conversion between protobuf's times and JavaScript's: durations are milliseconds, times are Dates. */
import { create, isMessage } from "@bufbuild/protobuf";
import {
  type Duration,
  durationMs,
  DurationSchema,
  type Timestamp,
  timestampDate,
  timestampFromDate,
  TimestampSchema,
} from "@bufbuild/protobuf/wkt";

/** The longest protobuf Duration: about 10,000 years. */
const MAX_SECONDS = 315_576_000_000;

/** The longest timer of Node; a longer one fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** A duration for a request. A value beyond the longest, such as Infinity, becomes the longest. */
export function toDuration(option: string, ms: number): Duration {
  checkMilliseconds(option, ms);
  const seconds = Math.trunc(ms / 1000);
  if (Math.abs(seconds) >= MAX_SECONDS) {
    return create(DurationSchema, { seconds: BigInt(Math.sign(seconds) * MAX_SECONDS) });
  }
  const nanos = Math.round((ms - seconds * 1000) * 1_000_000);
  return create(DurationSchema, { seconds: BigInt(seconds), nanos });
}

/** A time for a request: a Date, or a time of an answer. */
export function toTimestamp(option: string, time: unknown): Timestamp {
  if (time instanceof Date && !Number.isNaN(time.getTime())) {
    return timestampFromDate(time);
  }
  if (isMessage(time, TimestampSchema)) {
    return time;
  }
  throw new TypeError(`${option} must be a Date or a timestamp, not ${String(time)}`);
}

/** A time of an answer as a Date, to the millisecond. Undefined if it is absent. */
export function toDate(timestamp: Timestamp): Date;
export function toDate(timestamp: Timestamp | undefined): Date | undefined;
export function toDate(timestamp: Timestamp | undefined): Date | undefined {
  return timestamp === undefined ? undefined : timestampDate(timestamp);
}

/** A duration of an answer in milliseconds. Undefined if it is absent. */
export function toMilliseconds(duration: Duration): number;
export function toMilliseconds(duration: Duration | undefined): number | undefined;
export function toMilliseconds(duration: Duration | undefined): number | undefined {
  return duration === undefined ? undefined : durationMs(duration);
}

/** Refuses a value that is not a number, by the option's name. */
export function checkMilliseconds(option: string, value: number): void {
  if (typeof value !== "number" || Number.isNaN(value)) {
    throw new TypeError(`${option} must be a number of milliseconds, not ${String(value)}`);
  }
}

/** Waits for this long. An abort of the signal ends the wait: it throws the signal's reason. */
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

/** The length of a timer; undefined: longer than any timer. */
export function timerMs(ms: number): number | undefined {
  return ms > LONGEST_TIMER_MS ? undefined : ms;
}
