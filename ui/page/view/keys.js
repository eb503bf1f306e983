// The list of keys.

import { h } from "./dom.js";

/** @type {readonly [string, string][]} */
const KEYS = [
  ["j  k  ↓  ↑", "next, previous row"],
  ["g  G", "first, last row"],
  ["Enter", "open the task"],
  ["/", "filter tasks; search the output"],
  ["Esc", "leave a field, a dialog, a task"],
  ["x", "cancel the task"],
  ["X", "force the task to stop"],
  ["d", "detach the task"],
  ["R", "restart the task"],
  ["m", "send a message to the task"],
  ["D", "remove the task"],
  ["f", "follow or pause the output"],
  ["n  N", "next, previous match"],
  ["i", "type input"],
  ["Shift+Esc", "leave the keys of a terminal"],
  ["1 … 5", "live, finished, queues, events, server"],
  ["?", "this list"],
];

export function showKeys() {
  if (document.querySelector("dialog[open]")) return;
  const rows = KEYS.flatMap(([key, text]) => [
    h("dt", {}, ...key.split("  ").map((one) => h("kbd", {}, one))),
    h("dd", {}, text),
  ]);
  const close = h("button", { type: "button" }, "Close");
  const dialog = h(
    "dialog",
    { class: "dialog", "aria-labelledby": "keys-title" },
    h("h2", { id: "keys-title" }, "Keys"),
    h("dl", { class: "keys" }, ...rows),
    h("div", { class: "dialog-buttons" }, close),
  );
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
