/** What the steps of a case do: each through this package's own method. */
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";

import { create, toJson } from "@bufbuild/protobuf";

import {
  BackgroundTaskSchema,
  type CancelOptions,
  CancelResponseSchema,
  type CancelTarget,
  type Chunk,
  type DetachOptions,
  DetachResponseSchema,
  type DetachTarget,
  InspectResponseSchema,
  type HeelerClient,
  type ListOptions,
  OutputStream,
  type QueueOptions,
  QueueSchema,
  type ReadOutputOptions,
  ReadOutputResponseSchema,
  type Release,
  ReleasedSchema,
  RemoveResponseSchema,
  type RemoveTarget,
  type SpawnOptions,
  SpawnResponseSchema,
  type TaskEvent,
  TaskEventSchema,
  type WaitOptions,
  WaitResponseSchema,
  type WaitTarget,
  type WatchOptions,
} from "../../src/index.js";
import { present } from "../../src/present.js";
import { collect } from "../collect.js";
import { type Daemon, until } from "../daemon.js";
import type { JsonObject } from "./match.js";
import * as tables from "./translate.js";
import { translate } from "./translate.js";

/** Where a step is done. */
export interface Scene {
  readonly daemon: Daemon;
  readonly client: HeelerClient;
  /** Ends a step that takes too long. */
  readonly signal: AbortSignal;
  /** The files that `touch` has made. */
  readonly touched: Set<string>;
  /** Does other steps meanwhile. */
  readonly during: (steps: unknown) => Promise<void>;
}

/** What a step gave, and what `as` is to keep of it. */
export interface Given {
  readonly result: JsonObject;
  readonly keeps?: string | undefined;
}

type Step = (scene: Scene, fields: JsonObject) => Promise<Given>;

export const STEPS: Readonly<Record<string, Step>> = {
  spawn: async ({ client, signal }, fields) => {
    const options = translate("spawn", tables.SPAWN, fields) as unknown as SpawnOptions;
    const answer = await client.spawnResponse({ ...options, signal });
    return { result: toJson(SpawnResponseSchema, answer) as JsonObject, keeps: answer.task?.id };
  },

  run: async ({ client, signal }, fields) => {
    const options = translate("run", tables.SPAWN, fields) as unknown as SpawnOptions;
    const { task, reason, stdout, stderr } = await client.run({ ...options, signal });
    const released = releasedJson({ kind: "released", task, reason });
    return { result: { released, stdout, stderr }, keeps: task.id };
  },

  attach: async ({ client, signal }, fields) => {
    const { taskId, ...options } = translate("attach", tables.ATTACH, fields);
    const items = await collect(client.attach(taskId as string, { ...options, signal }));
    const chunks = items.flatMap((item) => (item.kind === "output" ? [item.chunk] : []));
    const [release] = items.flatMap((item) => (item.kind === "released" ? [item] : []));
    return { result: { released: releasedJson(present("release", release)), ...texts(chunks) } };
  },

  detach: async ({ client, signal }, fields) => {
    const { taskId, sessionId, ...rest } = translate("detach", tables.DETACH, fields);
    const target = only({ taskId, sessionId }) as unknown as DetachTarget;
    const answer = await client.detach(target, { ...(rest as DetachOptions), signal });
    return { result: toJson(DetachResponseSchema, answer) as JsonObject };
  },

  cancel: async ({ client, signal }, fields) => {
    const translated = translate("cancel", tables.CANCEL, fields);
    const { taskId, sessionId, filter, wait = false, ...rest } = translated;
    const target = only({ taskId, sessionId, filter }) as unknown as CancelTarget;
    const options = { ...rest, wait, signal } as CancelOptions;
    return {
      result: toJson(CancelResponseSchema, await client.cancel(target, options)) as JsonObject,
    };
  },

  list: async ({ client, signal }, fields) => {
    const options = translate("list", tables.LIST, fields) as ListOptions;
    const tasks = await collect(client.list({ ...options, signal }));
    return { result: { tasks: tasks.map((task) => toJson(BackgroundTaskSchema, task)) } };
  },

  inspect: async ({ client, signal }, fields) => {
    const { taskId } = translate("inspect", tables.TASK, fields);
    const answer = await client.inspect(taskId as string, { signal });
    return { result: toJson(InspectResponseSchema, answer) as JsonObject };
  },

  wait: async ({ client, signal }, fields) => {
    const translated = translate("wait", tables.WAIT, fields);
    const { taskIds, sessionId, count, ...rest } = translated;
    const target = { ...only({ taskIds, sessionId }), ...only({ count }) } as unknown as WaitTarget;
    const answer = await client.wait(target, { ...(rest as WaitOptions), signal });
    return { result: toJson(WaitResponseSchema, answer) as JsonObject };
  },

  read: async ({ client, signal }, fields) => {
    const { taskId, ...rest } = translate("read", tables.READ, fields);
    const options = { ...(rest as ReadOutputOptions), signal };
    const answer = await client.readOutput(taskId as string, options);
    const pieces = answer.chunks.map(({ content }) => Buffer.from((content.value ?? "") as string));
    const result = toJson(ReadOutputResponseSchema, { ...answer, chunks: [] }) as JsonObject;
    const text = Buffer.concat(pieces).toString();
    return { result: { ...result, text }, keeps: answer.nextOffset.toString() };
  },

  output: async ({ client, signal }, fields) => {
    const { taskId } = translate("output", tables.TASK, fields);
    return { result: texts(await collect(client.output(taskId as string, { signal }))) };
  },

  watch: async (scene, { count, during, ...fields }) => {
    const options = watchOptions(translate("watch", tables.WATCH, fields));
    const events = await watched(scene, options, Number(count), during ?? []);
    const result = { events: events.map((event) => toJson(TaskEventSchema, event)) };
    return { result, keeps: events.at(-1)?.revision.toString() };
  },

  remove: async ({ client, signal }, fields) => {
    const target = translate("remove", tables.REMOVE, fields) as unknown as RemoveTarget;
    return {
      result: toJson(RemoveResponseSchema, await client.remove(target, { signal })) as JsonObject,
    };
  },

  updateQueue: async ({ client, signal }, fields) => {
    const { name, ...rest } = translate("updateQueue", tables.QUEUE, fields);
    const options = { ...(rest as QueueOptions), signal };
    const queue = await client.updateQueue(name as string, options);
    return { result: { queue: toJson(QueueSchema, queue) } };
  },

  listQueues: async ({ client, signal }, fields) => {
    translate("listQueues", tables.NOTHING, fields);
    const queues = await client.listQueues({ signal });
    return { result: { queues: queues.map((queue) => toJson(QueueSchema, queue)) } };
  },

  restart: async ({ daemon }, { signal, ...rest }) => {
    translate("restart", tables.NOTHING, rest);
    if (signal !== "KILL" && signal !== "TERM") {
      throw new Error(`restart cannot be by ${JSON.stringify(signal)}`);
    }
    await daemon.kill(`SIG${signal}`);
    await daemon.restart();
    return { result: {} };
  },

  touch: async ({ touched }, fields) => {
    const file = fileOf("touch", fields);
    writeFileSync(file, "");
    touched.add(file);
    return await Promise.resolve({ result: {} });
  },

  await: async ({ touched, signal }, fields) => {
    const file = fileOf("await", fields);
    await until(`${file} is there`, () => {
      signal.throwIfAborted();
      return existsSync(file) && (touched.has(file) || statSync(file).size > 0) ? true : undefined;
    });
    return { result: {} };
  },

  gone: async (_, fields) => {
    const pids = readFileSync(fileOf("gone", fields), "utf8").trim().split("\n").map(Number);
    const left = pids.filter((pid) => existsSync(`/proc/${pid.toString()}`));
    if (left.length > 0) {
      throw new Error(`still there: ${left.join(", ")}`);
    }
    return await Promise.resolve({ result: {} });
  },
};

function fileOf(what: string, fields: JsonObject): string {
  const { file } = translate(what, tables.FILE, fields);
  if (typeof file !== "string") {
    throw new Error(`${what} needs a file`);
  }
  return file;
}

/** Those that are there. */
function only(options: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

function releasedJson({ task, reason }: Release): JsonObject {
  return toJson(ReleasedSchema, create(ReleasedSchema, { task, reason })) as JsonObject;
}

function texts(chunks: readonly Chunk[]): { stdout: string; stderr: string } {
  const of = (wanted: OutputStream): string =>
    Buffer.concat(
      chunks.filter(({ stream }) => stream === wanted).map(({ data }) => data),
    ).toString();
  return { stdout: of(OutputStream.STDOUT), stderr: of(OutputStream.STDERR) };
}

function watchOptions(translated: Record<string, unknown>): WatchOptions {
  const { afterRevision, stateId, ...rest } = translated;
  const revision = afterRevision as bigint | undefined;
  if (stateId !== undefined && revision === undefined) {
    throw new Error("a watch cannot have a stateId without an afterRevision");
  }
  const after =
    stateId === undefined || revision === undefined
      ? revision
      : { revision, stateId: stateId as string };
  return { ...rest, after };
}

/** The first events of a watch; the other steps are done once its first bookmark is there. */
async function watched(
  scene: Scene,
  options: WatchOptions,
  count: number,
  steps: unknown,
): Promise<TaskEvent[]> {
  const failed = new AbortController();
  const signal = AbortSignal.any([scene.signal, failed.signal]);
  const events: TaskEvent[] = [];
  let during: Promise<void> | undefined;
  for await (const item of scene.client.watch({ ...options, signal })) {
    if (item.kind === "bookmark") {
      during ??= scene.during(steps).catch((error: unknown) => {
        failed.abort(error);
      });
    } else if (item.kind === "event") {
      events.push(item.event);
      if (events.length >= count) {
        break;
      }
    }
  }
  await during;
  failed.signal.throwIfAborted();
  return events;
}
