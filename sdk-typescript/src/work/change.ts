/** Wakes the waiters for a condition. It carries no value: each waiter looks at the state itself. */
export class Change {
  readonly #wake = new Set<() => void>();

  /** Wakes every waiter. */
  notify(): void {
    const waiting = [...this.#wake];
    this.#wake.clear();
    for (const wake of waiting) {
      wake();
    }
  }

  /** Waits for the next change. An abort of the signal ends the wait: it throws the signal's reason. */
  async next(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const aborted = (): void => {
        this.#wake.delete(wake);
        reject(signal?.reason as Error);
      };
      const wake = (): void => {
        signal?.removeEventListener("abort", aborted);
        resolve();
      };
      this.#wake.add(wake);
      signal?.addEventListener("abort", aborted, { once: true });
    });
  }
}
