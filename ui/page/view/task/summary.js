// The facts of a task.

import { fragment } from "../../model/route.js";
import { line, lines } from "../../text/plain.js";
import {
  command,
  endingBesideState,
  isFinished,
  kind,
  span,
  stateText,
  words,
} from "../../text/task.js";
import { size } from "../../text/units.js";
import { h, setChildren, setText } from "../dom.js";

/** @import { BackgroundTask } from "../../../types/contract.js" */
/** @typedef {[name: string, text: string | undefined, look?: "link" | "mono"]} Fact */

export class SummaryPart {
  #command = h("pre", { class: "command", tabindex: "0" });
  #facts = h("dl", { class: "facts" });
  #output = h("dd");
  #end = h("div");
  /** The versions that are shown. @type {unknown[]} */
  #shown = [];
  element = h(
    "section",
    { role: "region", "aria-label": "Summary", class: "part", hidden: true },
    h("h2", {}, "Summary"),
    h("div", { class: "part-body" }, this.#command, this.#facts, this.#end),
  );

  /**
   * Shows a task. Elements whose content is the same stay: the command may be selected while output flows.
   * @param {BackgroundTask} task
   * @param {{place: number, end: number, summary: string}} known Its place in the queue, the end of its output, and
   *   its end in words
   */
  update(task, { place, end, summary }) {
    setText(this.#output, size(Math.max(Number(task.outputBytes), end)));
    const versions = [task, place, summary];
    if (versions.every((one, at) => one === this.#shown[at])) return;
    this.#shown = versions;
    this.element.hidden = false;
    this.#show(task, place, summary);
  }

  /**
   * @param {BackgroundTask} task
   * @param {number} place
   * @param {string} summary
   */
  #show(task, place, summary) {
    const { spec, result } = task;
    setText(this.#command, spec?.shell ? lines(spec.shell.script).trim() : command(task));
    const facts = [...origin(task, place), ...limits(task)];
    const losses = missing(task);
    setChildren(this.#facts, JSON.stringify([facts, losses]), () => [
      ...factList(facts),
      h("dt", {}, "Output"),
      this.#output,
      ...factList(losses),
    ]);
    const words = [result?.text, summary];
    setChildren(this.#end, JSON.stringify(words), () => [
      result && h("pre", { class: "text-block", tabindex: "0" }, lines(result.text)),
      summary &&
        h(
          "details",
          {},
          h("summary", {}, "The end in words"),
          h("pre", { class: "text-block", tabindex: "0" }, lines(summary)),
        ),
    ]);
  }
}

/** @param {Fact[]} facts Those without a text are left out */
const factList = (facts) =>
  facts
    .filter(([, text]) => text)
    .flatMap(([name, text = "", look]) => [h("dt", {}, name), h("dd", {}, shown(text, look))]);

/**
 * @param {string} text
 * @param {Fact[2]} look
 */
function shown(text, look) {
  if (look === "link") return h("a", { href: fragment("task", text), class: "mono" }, text);
  return look === "mono" ? h("span", { class: "mono" }, text) : text;
}

/**
 * @param {BackgroundTask} task
 * @param {number} place
 * @returns {Fact[]}
 */
function origin(task, place) {
  const { spec } = task;
  const labels = Object.entries(spec?.labels ?? {}).map(
    ([key, value]) => `${line(key)}=${line(value)}`,
  );
  const queue = line(spec?.queue ?? "");
  const key = spec?.exclusive;
  return [
    [
      "State",
      isFinished(task)
        ? [stateText(task), endingBesideState(task)].filter(Boolean).join(", ")
        : undefined,
    ],
    ["Kind", kind(task)],
    ["Session", line(spec?.sessionId ?? "")],
    ["Parent", spec?.parentId, "link"],
    ["Directory", line(spec?.workingDirectory ?? "")],
    ["Queue", queue && place ? `${queue}, place ${place}` : queue],
    ["Key", key && `${line(key.key)} (${words(key.mode, "EXCLUSIVE_MODE")})`],
    ["Labels", labels.join(" ")],
    ["Environment", (spec?.environment?.variableNames ?? []).join(" ")],
    ["UID", task.uid, "mono"],
  ];
}

/**
 * @param {BackgroundTask} task
 * @returns {Fact[]}
 */
function limits({ spec }) {
  return [
    ["Timeout", span(spec?.timeout)],
    ["Idle timeout", span(spec?.idleTimeout)],
    ["Stale after", span(spec?.silence?.staleAfter)],
  ];
}

/**
 * @param {BackgroundTask} task
 * @returns {Fact[]}
 */
function missing(task) {
  return [
    ["Missing output", line(task.captureError)],
    ["Abandoned", task.abandoned.map((one) => `${one.pid} ${line(one.command)}`).join("; ")],
  ];
}
