// The patterns of a task and the lines that matched.

import { line } from "../../text/plain.js";
import { count } from "../../text/units.js";
import { h } from "../dom.js";

/** @import { BackgroundTask } from "../../../types/contract.js" */
/** @import { Happened } from "../../model/tasks.js" */
/** @import { Part } from "./parts.js" */

/** The number of lines that are shown of each pattern. */
const SHOWN = 5;

/**
 * @param {Part} part
 * @param {BackgroundTask} task
 * @param {Happened[]} events
 * @param {(offset: number) => void} onOffset Shows a place in the output
 */
export function showPatterns(part, task, events, onOffset) {
  const patterns = task.spec?.output?.patterns ?? [];
  const matched = events.filter((event) => event.match);
  const data = patterns.length ? [patterns, task.matches, matched.at(-1)?.revision] : [];
  part.show(data, () =>
    patterns.map((pattern, index) => {
      const found = matched.flatMap((event) =>
        event.match?.pattern === pattern.name ? event.match.lines : [],
      );
      return h(
        "div",
        { class: "pattern" },
        h(
          "p",
          {},
          h("strong", {}, line(pattern.name)),
          " ",
          h("code", {}, line(pattern.regex)),
          h("span", { class: "muted" }, ` ${count(task.matches[index]?.count ?? 0)} lines`),
        ),
        h(
          "ul",
          { class: "plain-list" },
          ...found.slice(-SHOWN).map((one) =>
            h(
              "li",
              {},
              h(
                "button",
                {
                  type: "button",
                  class: "link mono",
                  title: `offset ${one.offset}`,
                  click: () => onOffset(Number(one.offset)),
                },
                line(one.text ?? "the line is not kept").slice(0, 200) || "(empty line)",
              ),
            ),
          ),
        ),
      );
    }),
  );
}
