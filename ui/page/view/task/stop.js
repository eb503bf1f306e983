// The steps of a stop, and the proof at its end.

import { actorText } from "../../text/event.js";
import { line } from "../../text/plain.js";
import { span, words } from "../../text/task.js";
import { clock, counted, size } from "../../text/units.js";
import { h, setChildren } from "../dom.js";
import { icon } from "../icons.js";

/** @import { BackgroundTask, Proof, StopRecord } from "../../../types/contract.js" */
/** @import { Child } from "../dom.js" */

/** @type {Readonly<Record<string, string>>} */
const METHODS = {
  PROOF_METHOD_CGROUP_EMPTY:
    "The cgroup has no member, the shim has no child left, and no process has the limit tag.",
  PROOF_METHOD_NO_CHILDREN: "The shim has no child left, and no process has a mark.",
  PROOF_METHOD_SWEEP:
    "The shim was dead. Its processes were searched for and killed until none was seen any more.",
  PROOF_METHOD_NEVER_STARTED: "Nothing was ever started.",
  PROOF_METHOD_REBOOT: "The machine has restarted since, which no process survives.",
};

export class StopPart {
  #body = h("div");
  element = h(
    "section",
    { role: "region", "aria-label": "Stop", class: "part part-stop", hidden: true },
    this.#body,
  );

  /** @param {BackgroundTask} task */
  update(task) {
    const { stop } = task;
    this.element.hidden = !stop;
    if (!stop) return;
    setChildren(this.#body, JSON.stringify([stop, task.state]), () => [
      h("h2", {}, "Stop"),
      h(
        "ol",
        { class: "steps" },
        ...steps(stop).map(([time, text]) =>
          h("li", {}, h("time", { class: "mono muted" }, time), text),
        ),
      ),
      ...proof(stop.proof),
    ]);
  }
}

/**
 * @param {StopRecord} stop
 * @returns {[string, string][]}
 */
function steps(stop) {
  const by = actorText(stop.actor);
  const reason = line(stop.reason);
  const requested = [
    `Requested: ${words(stop.cause, "END_REASON")}`,
    by && `by ${by}`,
    reason && `“${reason}”`,
  ];
  /** @type {[string, string][]} */
  const steps = [[clock(stop.requestTime), requested.filter(Boolean).join(" · ")]];
  if (stop.soft)
    steps.push([clock(stop.soft.endTime), `Soft phase, at most ${span(stop.soft.grace)}`]);
  for (const signal of stop.signals) {
    const to =
      signal.processes === undefined
        ? "the whole tree"
        : counted(signal.processes, "process", "processes");
    steps.push([clock(signal.sendTime), `${signal.name} to ${to}`]);
  }
  if (stop.forced) steps.push(["", "Ended without its worker"]);
  return steps;
}

/**
 * @param {Proof | undefined} proof
 * @returns {Child[]}
 */
function proof(proof) {
  if (!proof)
    return [h("p", { class: "proof proof-open" }, icon("starting"), "Nothing is proven yet.")];
  const at = clock(proof.checkTime);
  if (proof.proven) {
    const method = METHODS[proof.proven] ?? words(proof.proven, "PROOF_METHOD");
    return [
      h(
        "p",
        { class: "proof proof-good" },
        icon("proof"),
        h("span", {}, h("strong", {}, "Proven empty"), ` at ${at}. ${method}`),
      ),
    ];
  }
  if (proof.unproven) {
    return [
      h(
        "p",
        { class: "proof proof-open" },
        icon("warning"),
        `Nothing is proven: ${line(proof.unproven.reason)}`,
      ),
    ];
  }
  const rows = (proof.survivors?.processes ?? []).map((process) =>
    h(
      "tr",
      { "data-pid": process.pid },
      h("td", { class: "mono" }, process.pid ? String(process.pid) : "unknown"),
      h("td", {}, process.state),
      h("td", {}, size(Number(process.memoryBytes))),
      h("td", { class: "mono" }, line(process.command)),
    ),
  );
  const head = ["PID", "State", "Memory", "Command"].map((name) => h("th", { scope: "col" }, name));
  return [
    h(
      "p",
      { class: "proof proof-bad" },
      icon("warning"),
      h("span", {}, h("strong", {}, "Survivors"), ` at ${at}. The kill goes on.`),
    ),
    h(
      "table",
      { class: "table table-small" },
      h("thead", {}, h("tr", {}, ...head)),
      h("tbody", {}, ...rows),
    ),
  ];
}
