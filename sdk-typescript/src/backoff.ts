/**
 * When to try again: delays that grow, are bounded and differ between clients. No clock of its own: it
 * is told how long an attempt took.
 */
const FIRST_MS = 10;
const LONGEST_MS = 1000;

/** The delays of one series of failures. */
export class Backoff {
  #spentMs = 0;
  #nextMs = FIRST_MS;

  constructor(
    /** How long the series may last. */
    private readonly patienceMs = Infinity,
    /** Between 0 and 1; takes away up to half of a delay. */
    private readonly jitter: () => number = Math.random,
  ) {}

  /** Ends the series: what fails from now on is a new trouble. */
  reset(): void {
    this.#spentMs = 0;
    this.#nextMs = FIRST_MS;
  }

  /**
   * How long to pause after an attempt that lasted this long; undefined: give up.
   *
   * An attempt that lasted longer than any delay had been heard, so its failure begins a new series.
   */
  afterFailure(lastedMs: number): number | undefined {
    if (lastedMs > LONGEST_MS) {
      this.reset();
    } else {
      this.#spentMs += lastedMs;
    }
    if (this.#spentMs >= this.patienceMs) {
      return undefined;
    }
    const delay = this.#nextMs * (1 - this.jitter() / 2);
    this.#nextMs = Math.min(this.#nextMs * 2, LONGEST_MS);
    this.#spentMs += delay;
    return delay;
  }
}
