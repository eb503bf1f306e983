// Delays between attempts to connect.

const FIRST = 200;
const LONGEST = 5_000;

/** Doubles from one failure to the next, up to a limit, less a random part. */
export class Delays {
  #failures = 0;

  /** @param {() => number} random */
  constructor(random = Math.random) {
    this.random = random;
  }

  /** The milliseconds to wait after another failure. */
  next() {
    const full = Math.min(LONGEST, FIRST * 2 ** this.#failures);
    this.#failures += 1;
    return Math.round(full * (0.5 + this.random() / 2));
  }

  /** Begins anew after a success. */
  reset() {
    this.#failures = 0;
  }
}

/**
 * Completes after a time, or at once if the signal is aborted.
 * @param {number} milliseconds
 * @param {AbortSignal} [signal]
 * @returns {Promise<void>}
 */
export function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener("abort", done);
  });
}
