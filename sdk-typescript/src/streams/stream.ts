/** An async iterator that `for await` and `await using` can leave. */

/** A stream of items. Leaving its loop, or its scope with `await using`, ends it. */
export type Stream<T> = AsyncGenerator<T, void, undefined> & AsyncDisposable;

/**
 * Makes a stream of a generator. Its signal aborts when the caller's does, and when the stream is
 * disposed: an item that is being waited for would otherwise keep the stream open until it arrives.
 */
export function toStream<T>(
  signal: AbortSignal | undefined,
  open: (signal: AbortSignal) => AsyncIterable<T>,
): Stream<T> {
  const end = new AbortController();
  const items = forward(signal, end, open);
  return Object.assign(items, {
    async [Symbol.asyncDispose](): Promise<void> {
      end.abort();
      await items.return();
    },
  });
}

async function* forward<T>(
  signal: AbortSignal | undefined,
  end: AbortController,
  open: (signal: AbortSignal) => AsyncIterable<T>,
): AsyncGenerator<T, void, undefined> {
  const aborted = (): void => {
    end.abort(signal?.reason);
  };
  if (signal?.aborted === true) {
    aborted();
  }
  signal?.addEventListener("abort", aborted, { once: true });
  try {
    yield* open(end.signal);
  } finally {
    signal?.removeEventListener("abort", aborted);
  }
}
