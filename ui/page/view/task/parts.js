// The parts of a task's page that are lists of facts.

import { line, lines } from "../../text/plain.js";
import { words } from "../../text/task.js";
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
