// The order of the list: sessions, and in each the tree of parents and children.

import { time } from "../text/units.js";

/** @import { BackgroundTask } from "../../types/contract.js" */
/** @typedef {{kind: "session", key: string, session: string, count: number}} SessionRow */
/** @typedef {{kind: "task", key: string, task: BackgroundTask, level: number, isLast: boolean}} TaskRow */
/** @typedef {SessionRow | TaskRow} Row */
/** @typedef {"session" | "newest" | "oldest" | "last-ended" | "first-ended"} Sort */
/** @typedef {(a: BackgroundTask, b: BackgroundTask) => number} Order */

/** @type {Order} */
const oldestFirst = (a, b) => time(a.createTime) - time(b.createTime) || (a.id < b.id ? -1 : 1);

/** @type {Order} */
const firstEnded = (a, b) => time(a.endTime) - time(b.endTime) || oldestFirst(a, b);

/** @type {Readonly<Record<Sort, Order>>} In a session, parents and children are in the order of their start. */
const ORDERS = {
  session: oldestFirst,
  oldest: oldestFirst,
  newest: (a, b) => oldestFirst(b, a),
  "first-ended": firstEnded,
  "last-ended": (a, b) => firstEnded(b, a),
};

/**
 * The rows of tasks in their order.
 * @param {Iterable<BackgroundTask>} tasks
 * @param {Sort} sort
 * @returns {Row[]}
 */
export function arrange(tasks, sort) {
  const sorted = [...tasks].sort(ORDERS[sort]);
  if (sort !== "session") return sorted.map((task) => taskRow(task, 1, false));
  /** @type {Map<string, BackgroundTask[]>} */
  const sessions = new Map();
  for (const task of sorted) push(sessions, task.spec?.sessionId ?? "", task);
  const isAlone = sessions.size === 1 && sessions.has("");
  /** @type {Row[]} */
  const rows = [];
  // The tasks without a session come last.
  const named = [...sessions].sort(([a], [b]) => Number(a === "") - Number(b === ""));
  for (const [session, members] of named) {
    if (!isAlone) {
      rows.push({ kind: "session", key: `session ${session}`, session, count: members.length });
    }
    addTree(rows, members, isAlone ? 1 : 2);
  }
  return rows;
}

/**
 * @param {Row[]} rows
 * @param {BackgroundTask[]} members Of one session, oldest first
 * @param {number} top
 */
function addTree(rows, members, top) {
  const ids = new Set(members.map((task) => task.id));
  /** @type {Map<string, BackgroundTask[]>} */
  const children = new Map();
  for (const task of members) {
    const parent = task.spec?.parentId ?? "";
    push(children, ids.has(parent) && parent !== task.id ? parent : "", task);
  }
  /** @type {{task: BackgroundTask, level: number, isLast: boolean}[]} */
  const open = [];
  /** @type {(parent: string, level: number) => void} */
  const enter = (parent, level) => {
    const list = children.get(parent) ?? [];
    for (let at = list.length - 1; at >= 0; at -= 1) {
      const task = list[at];
      if (task) open.push({ task, level, isLast: at === list.length - 1 });
    }
    children.delete(parent);
  };
  enter("", top);
  for (let next = open.pop(); next; next = open.pop()) {
    rows.push(taskRow(next.task, next.level, next.isLast));
    enter(next.task.id, next.level + 1);
  }
}

/**
 * @param {BackgroundTask} task
 * @param {number} level
 * @param {boolean} isLast
 * @returns {TaskRow}
 */
const taskRow = (task, level, isLast) => ({ kind: "task", key: task.id, task, level, isLast });

/**
 * @template T
 * @param {Map<string, T[]>} map
 * @param {string} key
 * @param {T} value
 */
function push(map, key, value) {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}
