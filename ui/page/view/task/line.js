// A line of output as an element. Escape sequences became styles, everything else is text.

import { BOLD, DIM, ITALIC, STRIKE, UNDERLINE, colours, parse } from "../../output/ansi.js";
import { highlighted } from "../../output/highlight.js";
import { words } from "../../text/task.js";
import { count, size } from "../../text/units.js";
import { h } from "../dom.js";
import { icon } from "../icons.js";

/** @import { Line } from "../../output/lines.js" */

/** @type {readonly [number, string][]} */
const CLASSES = [
  [BOLD, "bold"],
  [DIM, "dim"],
  [ITALIC, "italic"],
  [UNDERLINE, "underline"],
  [STRIKE, "strike"],
];

/**
 * @param {Line} line
 * @param {string} query Text to mark
 */
export function lineElement(line, query) {
  const element = h("div", { class: "line", "data-offset": line.offset });
  if (line.gap) {
    const { length, cause, offset } = line.gap;
    element.dataset["gap"] = String(length);
    element.classList.add("line-gap");
    const why = words(cause, "OUTPUT_GAP_CAUSE");
    const text = `${size(length)} missing (${why}): ${count(length)} bytes from offset ${count(offset)}`;
    element.append(icon("warning"), text);
    return element;
  }
  if (line.stream === "err") element.dataset["stream"] = "stderr";
  for (const run of highlighted(parse(line.text, line.style).runs, query)) {
    const classes = CLASSES.filter(([flag]) => run.style.flags & flag).map(([, name]) => name);
    const { fg, bg } = colours(run.style);
    if (!run.isFound && !fg && !bg && !classes.length) {
      element.append(run.text);
      continue;
    }
    const part = h(run.isFound ? "mark" : "span", { class: classes.join(" ") || null }, run.text);
    if (!run.isFound) {
      part.style.color = fg;
      part.style.backgroundColor = bg;
    }
    element.append(part);
  }
  return element;
}
