import { setTimeout as rest } from "node:timers/promises";

/** The time limit for a condition: enough for a loaded machine. */
export const LIMIT_MS = 45_000;

/**
 * Waits until a condition gives a value.
 * @template T
 * @param {string} what
 * @param {() => Promise<T | undefined | false> | T | undefined | false} ask
 * @returns {Promise<T>}
 */
export async function until(what, ask) {
  const end = performance.now() + LIMIT_MS;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() > end) throw new Error(`not within ${LIMIT_MS} ms: ${what}`);
    await rest(20);
  }
}
