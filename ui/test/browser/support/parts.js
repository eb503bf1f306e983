/** Parts of the page, found as a person or a screen reader finds them: see ui/README.md. */

import { until } from "./until.js";

/** @typedef {import("playwright-core").Page} Page */

/**
 * The row of a task.
 * @param {Page} page
 * @param {string} id
 */
export function row(page, id) {
  return page.locator(`[role=row][data-task-id="${id}"]`);
}

/**
 * Waits until a task has a state, in its row or on its page.
 * @param {import("playwright-core").Locator} part
 * @param {string} state
 */
export async function inState(part, state) {
  await until(`state ${state}`, async () => (await part.getAttribute("data-state")) === state);
}

/**
 * The state on the page of a task.
 * @param {Page} page
 */
export function state(page) {
  return page.locator('[data-field="state"]').first();
}

/**
 * The output on the page of a task.
 * @param {Page} page
 */
export function output(page) {
  return page.getByRole("log", { name: "Output" });
}

/**
 * The lines of output that are elements: offset and text, in the order of the page.
 * @param {Page} page
 */
export async function lines(page) {
  return await output(page).evaluate((log) => {
    const all = [...log.querySelectorAll("[data-offset]:not([data-gap])")];
    const named = all.map((line) => ({
      offset: Number(line.getAttribute("data-offset")),
      text: line.textContent,
      top: line.getBoundingClientRect().top,
    }));
    return named.sort((a, b) => a.top - b.top).map(({ offset, text }) => ({ offset, text }));
  });
}

/**
 * Opens the page of a task.
 * @param {Page} page
 * @param {string} id
 */
export async function openTask(page, id) {
  await page.evaluate((id) => (location.hash = `#/task/${id}`), id);
  await state(page).waitFor();
}

/**
 * Opens a view by its link.
 * @param {Page} page
 * @param {"Live" | "Finished" | "Queues" | "Events" | "Server"} name
 */
export async function openView(page, name) {
  const link = page.getByRole("navigation", { name: "Views" }).getByRole("link", { name });
  await link.click();
  await until(`the view ${name}`, async () => (await link.getAttribute("aria-current")) === "page");
}

/**
 * Takes an action on the page of a task, and answers its question.
 * @param {Page} page
 * @param {string} action
 * @param {string} yes
 */
export async function act(page, action, yes) {
  const actions = page.getByRole("toolbar", { name: "Actions" });
  await actions.getByRole("button", { name: action, exact: true }).click();
  await page.getByRole("dialog", { name: action }).getByRole("button", { name: yes }).click();
}
