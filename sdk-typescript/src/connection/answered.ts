/** A call that starts something: after an abort, its answer is what says what is to be stopped. */

/** Time to wait for the answer after an abort. */
const ANSWER_LIMIT_MS = 5000;

/** Makes a call whose signal aborts some time after the caller's, so that its answer may still arrive. */
export async function answered<T>(
  signal: AbortSignal | undefined,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const aborted = (): void => {
    timer = setTimeout(() => {
      limit.abort(signal?.reason);
    }, ANSWER_LIMIT_MS);
  };
  signal?.addEventListener("abort", aborted, { once: true });
  try {
    return await call(limit.signal);
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", aborted);
  }
}
