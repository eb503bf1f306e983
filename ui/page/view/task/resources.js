// The use of CPU and memory by a task.

import { isFinished } from "../../text/task.js";
import { counted, duration, seconds, size } from "../../text/units.js";
import { h, setText } from "../dom.js";
import { Sparkline } from "../sparkline.js";

/** @import { BackgroundTask, InspectResponse } from "../../../types/contract.js" */
/** @import { Samples } from "../../model/samples.js" */

export class ResourcesPart {
  #cpu = new Sparkline();
  #memory = new Sparkline();
  #cpuText = h("strong");
  #memoryText = h("strong");
  #cpuNote = h("span", { class: "muted" });
  #memoryNote = h("span", { class: "muted" });
  element = h(
    "section",
    { role: "region", "aria-label": "Resources", class: "part", hidden: true },
    h("h2", {}, "Resources"),
    h(
      "div",
      { class: "meters" },
      h(
        "div",
        { class: "meter" },
        h("span", { class: "muted" }, "CPU"),
        this.#cpuText,
        this.#cpu.element,
        this.#cpuNote,
      ),
      h(
        "div",
        { class: "meter" },
        h("span", { class: "muted" }, "Memory"),
        this.#memoryText,
        this.#memory.element,
        this.#memoryNote,
      ),
    ),
  );

  /**
   * @param {BackgroundTask} task
   * @param {InspectResponse | undefined} inspected
   * @param {Samples} samples
   */
  update(task, inspected, samples) {
    const used = inspected?.resources;
    const isOver = isFinished(task);
    const hasRun = isOver || task.leader !== undefined;
    this.element.hidden =
      !used || !hasRun || (isOver && !seconds(used.cpuTime) && !Number(used.memoryBytes));
    if (!used) return;
    const cpuTime = duration(seconds(used.cpuTime));
    setText(this.#cpuText, isOver ? cpuTime : share(samples.cpu.at(-1)));
    setText(this.#cpuNote, isOver ? "in total" : `${cpuTime} used`);
    setText(this.#memoryText, size(Number(used.memoryBytes)));
    setText(
      this.#memoryNote,
      isOver ? "largest process" : counted(used.processCount, "process", "processes"),
    );
    this.#cpu.update(samples.cpu, 100);
    this.#memory.update(samples.memory, 1 << 20);
    // Of a task that was over before the page was opened, there is no curve.
    this.element.classList.toggle("no-curves", isOver && samples.memory.length < 2);
  }
}

/**
 * The share of a core in percent; a dash before the second reading.
 * @param {number | undefined} percent
 */
function share(percent) {
  return percent === undefined ? "–" : `${percent.toFixed(percent < 10 ? 1 : 0)}%`;
}
