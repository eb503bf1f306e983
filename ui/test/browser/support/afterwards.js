/** @typedef {import("node:test").TestContext} TestContext */

/** @type {WeakMap<TestContext, (() => Promise<void>)[]>} */
const steps = new WeakMap();

/**
 * Adds a step for the end of a test. The last one is done first, and each one whatever the others do.
 * @param {TestContext} t
 * @param {() => Promise<void>} step
 */
export function afterwards(t, step) {
  const known = steps.get(t);
  if (known) {
    known.push(step);
    return;
  }
  const all = [step];
  steps.set(t, all);
  t.after(async () => {
    /** @type {unknown[]} */
    const errors = [];
    for (const step of all.reverse()) await step().catch((error) => errors.push(error));
    if (errors.length > 0) throw new AggregateError(errors, errors.join("\n"));
  });
}
