/** Tabs in the background. A browser without a window shows every tab, so the page is told otherwise. */

/** @typedef {import("playwright-core").Page} Page */

/**
 * Makes a page hidden from its first document on.
 * @param {Page} page
 */
export async function startHidden(page) {
  await page.addInitScript(() => {
    let isHidden = true;
    Object.defineProperty(document, "hidden", { get: () => isHidden });
    const setHidden = (/** @type {boolean} */ value) => {
      isHidden = value;
      document.dispatchEvent(new Event("visibilitychange"));
    };
    Object.assign(globalThis, { setHidden });
  });
}

/**
 * Hides a page that began hidden, or brings it to the front.
 * @param {Page} page
 * @param {boolean} isHidden
 */
export async function setHidden(page, isHidden) {
  await page.evaluate((isHidden) => Reflect.get(globalThis, "setHidden")(isHidden), isHidden);
}
