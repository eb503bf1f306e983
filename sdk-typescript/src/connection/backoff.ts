/**
 * The delays between attempts: they grow up to a bound and differ between clients. The module reads no
 * clock: the caller says how long an attempt took.
 */
const FIRST_MS = 10;
const LONGEST_MS = 1000;

/** The delays of one series of failures. */
export class Backoff {
  #spentMs = 0;
  #nextMs = FIRST_MS;

  constructor(
    /** Maximum time of the series. */
    private readonly limitMs = Infinity,
    /** A number between 0 and 1; 1 halves the delay. */
    private readonly jitter: () => number = Math.random,
  ) {}

  /** Starts a new series. */
  reset(): void {
    this.#spentMs = 0;
    this.#nextMs = FIRST_MS;
  }

  /**
   * The delay after an attempt that took this long; undefined: the limit is reached.
   *
   * An attempt that had a connection and took longer than any delay was served for a while, so its
   * failure starts a new series. One that could not connect is time without a daemon, however long.
   */
  afterFailure(tookMs: number, wasConnected: boolean): number | undefined {
    if (wasConnected && tookMs > LONGEST_MS) {
      this.reset();
    } else {
      this.#spentMs += tookMs;
    }
    if (this.#spentMs >= this.limitMs) {
      return undefined;
    }
    const delay = this.#nextMs * (1 - this.jitter() / 2);
    this.#nextMs = Math.min(this.#nextMs * 2, LONGEST_MS);
    this.#spentMs += delay;
    return delay;
  }
}
