// The history of a task.

import { actorText, eventDetail, typeKey, typeText } from "../../text/event.js";
import { outcome, words } from "../../text/task.js";
import { clock } from "../../text/units.js";
import { h } from "../dom.js";

/** @import { BackgroundTask } from "../../../types/contract.js" */
/** @import { Happened } from "../../model/tasks.js" */
/** @import { Part } from "./parts.js" */

/** @typedef {{key: string, at: string | undefined, text: string, detail: string, times: number}} Entry */

const MOST = 200;

/**
 * @param {Part} part
 * @param {BackgroundTask} task
 * @param {Happened[]} events Of this task, oldest first
 */
export function showTimeline(part, task, events) {
  const entries = timeline(task, events);
  part.show(entries, () => [
    h(
      "ol",
      { class: "timeline" },
      ...entries.map((entry) =>
        h(
          "li",
          { "data-type": entry.key },
          h("time", { class: "mono muted" }, clock(entry.at)),
          h(
            "span",
            {},
            h("strong", {}, entry.text),
            entry.times > 1 ? h("span", { class: "muted" }, ` ×${entry.times}`) : null,
            entry.detail ? h("span", { class: "muted" }, ` ${entry.detail}`) : null,
          ),
        ),
      ),
    ),
  ]);
}

/**
 * The entries of the timeline. Without the events, because they are not kept any more, those of the task's times.
 * @param {BackgroundTask} task
 * @param {Happened[]} events
 * @returns {Entry[]}
 */
export function timeline(task, events) {
  /** @type {Entry[]} */
  const entries = events[0]?.type === "TASK_EVENT_TYPE_CREATED" ? [] : recorded(task, events);
  for (const event of events) {
    const key = typeKey(event.type);
    const last = entries.at(-1);
    const entry = {
      key,
      at: event.at,
      text: typeText(event.type),
      detail: eventDetail(event),
      times: event.times ?? 1,
    };
    const isRepeated = last?.key === key && (key === "progress" || key === "matched");
    if (isRepeated) entries[entries.length - 1] = { ...entry, times: last.times + entry.times };
    else entries.push(entry);
  }
  return entries.slice(-MOST);
}

/**
 * @param {BackgroundTask} task
 * @param {Happened[]} events
 * @returns {Entry[]}
 */
function recorded(task, events) {
  const told = new Set(events.map((event) => typeKey(event.type)));
  /** @type {[string, string, string | undefined, string][]} */
  const all = [
    ["created", "Created", task.createTime, ""],
    ["started", "Started", task.startTime, task.leader ? `pid ${task.leader.pid}` : ""],
    [
      "detached",
      "Detached",
      task.detachment?.detachTime,
      words(task.detachment?.cause, "DETACH_CAUSE"),
    ],
    ["stopping", "Stopping", task.stop?.requestTime, actorText(task.stop?.actor)],
    ["ended", "Ended", task.endTime, outcome(task.outcome)],
  ];
  return all
    .filter(([key, , at]) => at && !told.has(key))
    .map(([key, text, at, detail]) => ({ key, at, text, detail, times: 1 }));
}
