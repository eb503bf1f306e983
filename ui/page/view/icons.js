// Icons, drawn on 16 by 16.

import { svg } from "./dom.js";

/** @type {Readonly<Record<string, string>>} */
const PATHS = {
  // States
  queued: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11ZM8 5v3l2 1.5",
  starting: "M8 2.5A5.5 5.5 0 0 1 13.5 8",
  running: "M5.5 4v8l6.5-4Z",
  stopping: "M5 5h6v6H5Z",
  completed: "m3.5 8.5 3 3 6-7",
  failed: "m4.5 4.5 7 7m0-7-7 7",
  cancelled: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11ZM4.2 4.2l7.6 7.6",
  "timed-out": "M8 3.5a5 5 0 1 0 0 10 5 5 0 0 0 0-10ZM8 6v2.5M6.5 1.5h3",
  lost: "M6 6a2 2 0 1 1 3 1.7c-.7.4-1 .8-1 1.6M8 12v.2",
  unknown: "M8 12v.2",
  // Others
  search: "M7 3a4 4 0 1 0 0 8 4 4 0 0 0 0-8Zm3 7 3.5 3.5",
  back: "M9.5 3.5 5 8l4.5 4.5",
  up: "m3.5 9.5 4.5-4 4.5 4",
  down: "m3.5 6.5 4.5 4 4.5-4",
  pause: "M5.5 4v8m5-8v8",
  copy: "M6 6h7v7H6ZM3 10V3h7",
  proof: "M8 2 3 4v4c0 3 2 5 5 6 3-1 5-3 5-6V4Zm-2.2 6 1.6 1.7L10.4 6.5",
  warning: "M8 2.5 1.8 13h12.4ZM8 6.5V9m0 2v.2",
  key: "M10 3a3 3 0 1 0 0 6 3 3 0 0 0 0-6ZM8 8l-5 5m1.5-1.5L6 13",
  help: "M5.8 6a2.2 2.2 0 1 1 3.2 2c-.7.4-1 .8-1 1.6M8 12v.2",
  follow: "M8 3v7m-3.5-3L8 10.500 11.500 7M3.500 13.500h9",
};

/**
 * An icon. It says nothing to a screen reader: the text beside it does.
 * @param {string} name
 */
export function icon(name) {
  const path = svg("path", { d: PATHS[name] ?? "" });
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, path);
}
