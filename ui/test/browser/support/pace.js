/** The pace of a page: how long its main thread was busy at a time, and how long it showed nothing new. */

/** @typedef {import("playwright-core").Page} Page */
/** @typedef {{longTasks: number, longestTask: number, frames: number, longestGap: number, heap: number}} Pace */

/**
 * Begins to measure in every document of a page. Before its first address.
 * @param {Page} page
 */
export async function measure(page) {
  await page.addInitScript(() => {
    const pace = { longTasks: 0, longestTask: 0, frames: 0, longestGap: 0 };
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) {
        pace.longTasks += 1;
        pace.longestTask = Math.max(pace.longestTask, entry.duration);
      }
    }).observe({ type: "longtask" });
    let last = performance.now();
    const frame = (/** @type {number} */ now) => {
      pace.frames += 1;
      pace.longestGap = Math.max(pace.longestGap, now - last);
      last = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    Object.assign(globalThis, { pace });
  });
}

/**
 * The pace since the last call.
 * @param {Page} page
 * @returns {Promise<Pace>}
 */
export async function pace(page) {
  return await page.evaluate(() => {
    const { pace } = /** @type {{pace: Omit<Pace, "heap">}} */ (
      /** @type {unknown} */ (globalThis)
    );
    const memory = /** @type {{usedJSHeapSize: number}} */ (Reflect.get(performance, "memory"));
    const copy = { ...pace, heap: memory.usedJSHeapSize };
    Object.assign(pace, { longTasks: 0, longestTask: 0, frames: 0, longestGap: 0 });
    return copy;
  });
}

/**
 * A pace in words.
 * @param {Pace} pace
 */
export function words({ longTasks, longestTask, frames, longestGap, heap }) {
  const ms = (/** @type {number} */ time) => `${Math.round(time)} ms`;
  const long = longTasks ? `${longTasks} long tasks, at most ${ms(longestTask)}` : "no long task";
  return `${long}; ${frames} frames, ${ms(longestGap)} apart at most; ${Math.round(heap / 1e6)} MB`;
}
