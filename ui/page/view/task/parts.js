// The parts of a task's page that are lists of facts.

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
import { clock, count, duration, seconds, size } from "../../text/units.js";
import { h, setChildren } from "../dom.js";

/** @import { BackgroundTask, Block, InspectResponse, ProcessInfo } from "../../../types/contract.js" */
/** @import { Child } from "../dom.js" */

/** A part of the page with a name, hidden while it has no content. */
export class Part {
  #body = h("div", { class: "part-body" });
  element;

  /**
   * @param {string} name
   * @param {string} [style]
   */
  constructor(name, style = "") {
    const heading = h("h2", {}, name);
    this.element = h(
      "section",
      { role: "region", "aria-label": name, class: `part ${style}`, hidden: true },
      heading,
      this.#body,
    );
  }

  /**
   * Shows content that is made from data, unless the data is the same as before.
   * @param {unknown} data Undefined or empty: the part is hidden
   * @param {() => Child[]} content
   */
  show(data, content) {
    const isEmpty =
      data === undefined || data === null || (Array.isArray(data) && data.length === 0);
    this.element.hidden = isEmpty;
    if (!isEmpty) setChildren(this.#body, JSON.stringify(data), content);
  }
}

/** @param {Fact[]} facts Those without a value are left out */
const factList = (facts) =>
  h(
    "dl",
    { class: "facts" },
    ...facts
      .filter(([, value]) => value)
      .flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
  );

/** @param {string} id */
const taskLink = (id) =>
  id ? h("a", { href: fragment("task", id), class: "mono" }, id) : undefined;

/**
 * @param {Part} part
 * @param {BackgroundTask} task
 * @param {{place: number, end: number, summary: string}} known Its place in the queue, the end of its output, and its
 *   end in words
 */
export function showSummary(part, task, { place, end, summary }) {
  const output = Math.max(Number(task.outputBytes), end);
  part.show([task.revision, place, summary, output], () => {
    const { spec, result } = task;
    return [
      h(
        "pre",
        { class: "command", tabindex: "0" },
        spec?.shell ? lines(spec.shell.script).trim() : command(task),
      ),
      factList([
        ...origin(task, place),
        ...limits(task),
        ["Output", size(output)],
        ...missing(task),
      ]),
      result ? h("pre", { class: "text-block", tabindex: "0" }, lines(result.text)) : null,
      summary
        ? h(
            "details",
            {},
            h("summary", {}, "The end in words"),
            h("pre", { class: "text-block", tabindex: "0" }, lines(summary)),
          )
        : null,
    ];
  });
}

/** @typedef {[string, Child | undefined]} Fact */

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
    ["Parent", taskLink(spec?.parentId ?? "")],
    ["Directory", line(spec?.workingDirectory ?? "")],
    ["Queue", queue && place ? `${queue}, place ${place}` : queue],
    ["Key", key && `${line(key.key)} (${words(key.mode, "EXCLUSIVE_MODE")})`],
    ["Labels", labels.join(" ")],
    ["Environment", (spec?.environment?.variableNames ?? []).join(" ")],
    ["UID", h("span", { class: "mono" }, task.uid)],
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

/** @param {Part} part @param {BackgroundTask} task */
export function showProgress(part, task) {
  part.show(task.progress, () => {
    const { percent, intent = "", counts = {}, updateTime } = task.progress ?? {};
    const counters = Object.entries(counts).map(([name, value]) =>
      h("span", { class: "counter" }, h("b", {}, count(value)), ` ${line(name)}`),
    );
    return [
      percent === undefined
        ? null
        : h("progress", { max: 100, value: percent, "aria-label": "Done" }, `${percent}%`),
      h("p", {}, percent === undefined ? "" : h("strong", {}, `${percent}% `), line(intent)),
      counters.length ? h("p", { class: "counters" }, ...counters) : null,
      h("p", { class: "muted" }, `Reported at ${clock(updateTime)}`),
    ];
  });
}

/** @param {Part} part @param {InspectResponse | undefined} inspected */
export function showPorts(part, inspected) {
  part.show(inspected?.ports, () => [
    h(
      "ul",
      { class: "plain-list" },
      ...(inspected?.ports ?? []).map((port) =>
        h(
          "li",
          {},
          h(
            "span",
            { class: "mono" },
            `${port.address.includes(":") ? `[${port.address}]` : port.address}:${port.port}`,
          ),
          h("span", { class: "muted" }, ` pid ${port.pid} ${line(port.command).slice(0, 120)}`),
        ),
      ),
    ),
  ]);
}

const PROCESS_STATES = /** @type {Readonly<Record<string, string>>} */ ({
  R: "running",
  S: "sleeping",
  D: "waits for the disk",
  T: "stopped",
  Z: "zombie",
  I: "idle",
});

/** @param {Part} part @param {InspectResponse | undefined} inspected */
export function showProcesses(part, inspected) {
  part.show(inspected?.processes, () => {
    const head = ["PID", "Command", "State", "CPU", "Memory"].map((name) =>
      h("th", { scope: "col" }, name),
    );
    const rows = nested(inspected?.processes ?? []).map(({ process, level }) => {
      const text = h(
        "span",
        { class: "process-command", title: line(process.command) },
        line(process.command),
      );
      text.style.paddingInlineStart = `${level * 14}px`;
      return h(
        "tr",
        {},
        h("td", { class: "mono muted" }, String(process.pid)),
        h("td", { class: "mono cell-command" }, text),
        h("td", { title: PROCESS_STATES[process.state] ?? "" }, process.state),
        h("td", {}, duration(seconds(process.cpuTime))),
        h("td", {}, size(Number(process.memoryBytes))),
      );
    });
    return [
      h(
        "table",
        { class: "table table-small" },
        h("thead", {}, h("tr", {}, ...head)),
        h("tbody", {}, ...rows),
      ),
    ];
  });
}

/** @param {ProcessInfo[]} processes Each after its parent */
function nested(processes) {
  /** @type {Map<number, number>} */
  const levels = new Map();
  return processes.map((process) => {
    const level = Math.min(8, (levels.get(process.parentPid) ?? -1) + 1);
    levels.set(process.pid, level);
    return { process, level };
  });
}

/** @param {Part} part @param {Block[] | undefined} blocks */
export function showBlocks(part, blocks) {
  part.show(blocks, () => [
    h(
      "ol",
      { class: "blocks" },
      ...(blocks ?? []).map((block) => {
        const kind = words(block.kind, "BLOCK_KIND");
        return h(
          "li",
          { class: "block", "data-kind": kind.replaceAll(" ", "-"), value: block.number },
          h(
            "div",
            { class: "block-head" },
            h("span", { class: "block-kind" }, kind),
            block.name ? h("code", {}, line(block.name)) : null,
            h("time", { class: "muted" }, clock(block.blockTime)),
          ),
          h("pre", { class: "block-text", tabindex: "0" }, lines(block.text)),
        );
      }),
    ),
  ]);
}
