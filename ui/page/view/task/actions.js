// Actions on a task. Each asks first, and shows the result.

import { CallError } from "../../connect/error.js";
import { fragment } from "../../model/route.js";
import { line } from "../../text/plain.js";
import { isFinished, kind, title, words } from "../../text/task.js";
import { ask } from "../dialog.js";
import { h } from "../dom.js";

/** @import { BackgroundTask, TaskSpec } from "../../../types/contract.js" */
/** @import { App } from "../app.js" */

/** The name of the page in the records of a stop, a detach or a message. */
const ACTOR = "heeler dashboard";

/** @typedef {"Cancel" | "Force" | "Detach" | "Restart" | "Send" | "Remove"} Action */

/** @type {Readonly<Record<Action, (app: App, task: BackgroundTask) => Promise<void>>>} */
const RUN = {
  Cancel: (app, task) => cancelTask(app, task, "Cancel"),
  Force: (app, task) => cancelTask(app, task, "Force"),
  Detach: detachTask,
  Restart: restartTask,
  Send: sendMessage,
  Remove: removeTask,
};

/**
 * The actions that a task allows now.
 * @param {App} app
 * @param {BackgroundTask} task
 * @returns {Action[]}
 */
export function allowed(app, task) {
  if (app.isReadOnly) return [];
  /** @type {Action[]} */
  const actions = [];
  if (!isFinished(task)) {
    if (task.state !== "TASK_STATE_STOPPING") actions.push("Cancel");
    actions.push("Force");
    if (task.placement === "PLACEMENT_FOREGROUND") actions.push("Detach");
    actions.push("Send");
  }
  if (task.spec?.argv ?? task.spec?.shell) actions.push("Restart");
  if (isFinished(task)) actions.push("Remove");
  return actions;
}

/**
 * @param {App} app
 * @param {Action} action
 * @param {BackgroundTask} task
 */
export function run(app, action, task) {
  if (allowed(app, task).includes(action)) void RUN[action](app, task);
}

/** @param {BackgroundTask} task */
const named = (task) =>
  h("p", {}, h("strong", {}, title(task)), " ", h("span", { class: "mono muted" }, task.id));

/** @param {string} label */
function textField(label) {
  return labelled(label, h("textarea", { id: "dialog-text", rows: 4 }));
}

/** @param {string} label */
function lineField(label) {
  return labelled(label, h("input", { id: "dialog-text", autocomplete: "off" }));
}

/**
 * @template {HTMLElement} T
 * @param {string} label
 * @param {T} field
 */
function labelled(label, field) {
  return {
    field,
    element: h("div", { class: "field" }, h("label", { for: "dialog-text" }, label), field),
  };
}

/**
 * Runs a call, and shows what failed.
 * @template T
 * @param {App} app
 * @param {string} failed
 * @param {() => Promise<T>} call
 * @returns {Promise<T | undefined>}
 */
async function attempt(app, failed, call) {
  try {
    return await call();
  } catch (error) {
    app.messages.fail(`${failed}: ${CallError.of(error).message}`);
    return undefined;
  } finally {
    app.changed();
  }
}

/**
 * @param {App} app
 * @param {BackgroundTask} task
 * @param {"Cancel" | "Force"} action
 */
export async function cancelTask(app, task, action) {
  if (!allowed(app, task).includes(action)) return;
  const isForced = action === "Force";
  const reason = lineField("Reason (optional)");
  const explained = isForced
    ? "The whole tree is killed at once, and the tasks that it spawned."
    : "The task gets its stop signal, then its grace, then a kill of the whole tree; so do the tasks that it spawned.";
  const yes = isForced ? "Force stop" : "Cancel task";
  if (
    !(await ask({
      title: action,
      content: [named(task), explained, reason.element],
      yes,
      isDanger: true,
    }))
  )
    return;
  const shown = app.messages.show(`${title(task)} is being stopped …`);
  await attempt(app, `${title(task)} is not stopped`, () =>
    stop(app, task, { reason: reason.field.value, ...(isForced ? { force: {} } : {}) }),
  );
  shown();
}

/**
 * Stops a task and shows the proof.
 * @param {App} app
 * @param {BackgroundTask} task
 * @param {object} how
 * @returns {Promise<boolean>} True if the task is finished
 */
async function stop(app, task, how) {
  const request = {
    filter: { taskIds: [task.id] },
    actor: ACTOR,
    cascade: true,
    ...how,
  };
  const [result] = (await app.client.call("Cancel", request)).results;
  const name = title(task);
  if (result?.unrecorded)
    app.messages.fail(`The stop is not recorded yet: ${result.unrecorded.message}`);
  if (result?.outcome === "CANCEL_OUTCOME_ALREADY_FINISHED") {
    app.messages.show(`${name} was finished already.`);
    return true;
  }
  const ended = await app.stops.end(result?.task ?? task);
  const proof = ended?.stop?.proof;
  if (proof?.survivors) {
    const pids = proof.survivors.processes.map((process) => process.pid || "unknown").join(", ");
    app.messages.fail(`${name}: processes have survived the kill so far: ${pids}`);
  } else if (proof?.proven) {
    app.messages.show(
      `${name} is stopped. Its tree is proven empty (${words(proof.proven, "PROOF_METHOD")}).`,
    );
  } else {
    app.messages.show(
      `${name} is stopped${proof?.unproven ? `, unproven: ${proof.unproven.reason}` : ""}.`,
    );
  }
  return !ended || isFinished(ended);
}

/** @param {App} app @param {BackgroundTask} task */
async function detachTask(app, task) {
  const explained = "The task continues in the background. Its clients stop to wait for it.";
  if (!(await ask({ title: "Detach", content: [named(task), explained], yes: "Detach task" })))
    return;
  const request = { filter: { taskIds: [task.id] }, actor: ACTOR };
  const answer = await attempt(app, `${title(task)} is not detached`, () =>
    app.client.call("Detach", request),
  );
  const result = answer?.results[0];
  if (result) app.messages.show(`${title(task)}: ${words(result.outcome, "DETACH_OUTCOME")}.`);
}

/**
 * The specification for another task with the same command, and what it leaves out.
 * @param {TaskSpec} spec
 * @param {(id: string) => boolean} isLive
 * @returns {{spec: object, left: string[]}}
 */
export function again(spec, isLive) {
  const { foreground, parentId, environment, ...rest } = spec;
  const left = [];
  const names = environment?.variableNames ?? [];
  if (names.length)
    left.push(`the environment variables ${names.join(", ")}, whose values are not kept`);
  if (foreground) left.push("the foreground");
  if (parentId && !isLive(parentId)) left.push(`the parent ${parentId}, which is not live`);
  const kept =
    environment &&
    Object.fromEntries(Object.entries(environment).filter(([name]) => name !== "variableNames"));
  return {
    spec: {
      ...rest,
      parentId: isLive(parentId) ? parentId : "",
      ...(kept ? { environment: kept } : {}),
    },
    left,
  };
}

/** @param {App} app @param {BackgroundTask} task */
async function restartTask(app, task) {
  if (!task.spec) return;
  const isLive = !isFinished(task);
  const { spec, left } = again(task.spec, (id) => app.tasks.live.has(id));
  const content = [
    named(task),
    isLive
      ? "The task is cancelled. Then its command is started as a new task."
      : "The command is started as a new task.",
    ...(left.length
      ? [h("p", { class: "warning" }, `The new task is without ${line(left.join("; "))}.`)]
      : []),
  ];
  if (!(await ask({ title: "Restart", content, yes: "Restart task", isDanger: isLive }))) return;
  const requestId = crypto.getRandomValues(new Uint32Array(4)).join("-");
  const answer = await attempt(app, `${title(task)} is not restarted`, async () => {
    const isFree = !isLive || (await stop(app, task, { reason: "restart" }));
    return isFree ? app.client.call("Spawn", { requestId, spec }) : undefined;
  });
  if (!answer?.task) return;
  for (const notice of answer.notices) app.messages.show(notice.message);
  app.messages.show(`Started as ${answer.task.id}.`);
  app.open(fragment("task", answer.task.id));
}

/** @param {App} app @param {BackgroundTask} task */
async function sendMessage(app, task) {
  const message = textField("Message");
  const explained = `The message goes to the mailbox of the ${kind(task)} task, from which its worker receives it.`;
  if (
    !(await ask({
      title: "Send",
      content: [named(task), explained, message.element],
      yes: "Send message",
    }))
  )
    return;
  const text = message.field.value;
  if (!text) return;
  const request = { taskId: task.id, text, actor: ACTOR };
  const answer = await attempt(app, "The message is not sent", () =>
    app.client.call("SendMessage", request),
  );
  if (answer) app.messages.show(`Message ${answer.number} is in the mailbox.`);
}

/** @param {App} app @param {BackgroundTask} task */
async function removeTask(app, task) {
  const explained = "The task and its output are deleted.";
  if (
    !(await ask({
      title: "Remove",
      content: [named(task), explained],
      yes: "Remove task",
      isDanger: true,
    }))
  )
    return;
  const request = { filter: { taskIds: [task.id] } };
  const answer = await attempt(app, `${title(task)} is not removed`, () =>
    app.client.call("Remove", request),
  );
  if (!answer) return;
  app.messages.show(`${title(task)} is removed.`);
  app.open(fragment("finished"));
}
