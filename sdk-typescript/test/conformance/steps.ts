/**
 * The steps of a case, each through this package's own method. A step with the name of a unary call
 * needs no code here: it follows the convention that client.ts states. STEPS has the others.
 */
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";

import {
  create,
  type DescMessage,
  type DescMethod,
  fromJson,
  type JsonValue,
  type Message,
  toJson,
} from "@bufbuild/protobuf";

import * as v1 from "../../src/gen/heeler/v1/index.js";
import {
  type AttachEnd,
  type Chunk,
  type FollowOptions,
  type HeelerClient,
  OutputStream,
  type SpawnOptions,
  type TaskEvent,
  type WatchOptions,
} from "../../src/index.js";
import { collect } from "../support/collect.js";
import { type Daemon, until } from "../support/daemon.js";
import type { JsonObject } from "./match.js";
import { defined, type Options, toOptions, toSpawnOptions } from "./options.js";

/** The surroundings of a step. */
export interface Scene {
  readonly daemon: Daemon;
  readonly client: HeelerClient;
  /** Ends a step that takes too long. */
  readonly signal: AbortSignal;
  /** The files that `touch` has created. */
  readonly touched: Set<string>;
  /** Does other steps. */
  readonly during: (steps: unknown) => Promise<void>;
}

/** The result of a step, and the value that `as` stores. */
export interface StepResult {
  readonly result: JsonObject;
  readonly stores?: string | undefined;
}

type Step = (scene: Scene, fields: JsonObject) => Promise<StepResult>;

/** The step of this name, if there is one. */
export function findStep(name: string): Step | undefined {
  if (Object.hasOwn(STEPS, name)) {
    return STEPS[name];
  }
  const method = v1.BackgroundTasks.methods.find(({ localName }) => localName === name);
  return method?.methodKind === "unary" ? unaryStep(method) : undefined;
}

/** The required fields that a method of the client takes as its first parameter. */
const FIRST_PARAMETERS = ["filter", "taskId", "name"];

type Method = (...parameters: unknown[]) => Promise<unknown>;

function unaryStep({ localName, input, output }: DescMethod): Step {
  return async ({ client, signal }, fields) => {
    const options: Options = { ...toOptions(input, fields), signal };
    const first = FIRST_PARAMETERS.find((name) => name in input.field);
    const parameters = first === undefined ? [options] : [options[first], without(options, first)];
    const methods = client as unknown as Partial<Record<string, Method>>;
    const method = methods[localName];
    if (method === undefined) {
      throw new Error(`the client has no method ${localName}`);
    }
    return { result: toResult(output, await method.apply(client, parameters)) };
  };
}

/**
 * An answer in JSON. An answer with a single field was returned as that field, and one with a result for
 * each task as those results.
 */
function toResult(output: DescMessage, answer: unknown): JsonObject {
  const [only, ...others] = output.fields;
  const isField = others.length === 0 || Array.isArray(answer);
  const message =
    only !== undefined && isField
      ? create(output, { [only.localName]: answer })
      : (answer as Message);
  return toJson(output, message) as JsonObject;
}

const STEPS: Readonly<Record<string, Step>> = {
  spawn: async ({ client, signal }, fields) => {
    const options = toSpawnOptions(v1.SpawnRequestSchema, fields) as unknown as SpawnOptions;
    const answer = await client.spawnResponse({ ...options, signal });
    return { result: toResult(v1.SpawnResponseSchema, answer), stores: answer.task?.id };
  },

  run: async ({ client, signal }, fields) => {
    const options = toSpawnOptions(v1.SpawnRequestSchema, fields) as unknown as SpawnOptions;
    const { task, reason, stdout, stderr } = await client.run({ ...options, signal });
    const ended = endedJson({ kind: "ended", task, reason });
    return { result: { ended, stdout, stderr }, stores: task.id };
  },

  attach: async ({ client, signal }, fields) => {
    const { taskId, ...options } = toOptions(v1.AttachRequestSchema, fields);
    const items = await collect(client.attach(taskId as string, { ...options, signal }));
    const chunks = items.flatMap((item) => (item.kind === "output" ? [item.chunk] : []));
    const [end] = items.flatMap((item) => (item.kind === "ended" ? [item] : []));
    if (end === undefined) {
      throw new Error("the attachment has no end");
    }
    return { result: { ended: endedJson(end), ...texts(chunks) } };
  },

  list: async ({ client, signal }, fields) => {
    const options = toOptions(v1.ListRequestSchema, fields);
    const tasks = await collect(client.list({ ...options, signal }));
    return { result: { tasks: tasks.map((task) => toJson(v1.BackgroundTaskSchema, task)) } };
  },

  readOutput: async ({ client, signal }, fields) => {
    const { taskId, ...options } = toOptions(v1.ReadOutputRequestSchema, fields);
    const answer = await client.readOutput(taskId as string, { ...options, signal });
    const pieces = answer.chunks.map(({ content }) =>
      content.case === "gap" ? Buffer.alloc(0) : Buffer.from((content.value ?? "") as string),
    );
    const result = toResult(v1.ReadOutputResponseSchema, { ...answer, chunks: [] });
    const text = Buffer.concat(pieces).toString();
    return { result: { ...result, text }, stores: answer.nextOffset.toString() };
  },

  followOutput: async ({ client, signal }, fields) => {
    const follow = withPosition(toOptions(v1.FollowOutputRequestSchema, fields)) as FollowOptions;
    const tasks = new Map<string, FollowedTask>();
    for await (const item of client.followOutput({ ...follow, signal })) {
      if (item.kind === "task") {
        tasks.set(item.task.id, { id: item.task.id, text: "" });
      } else if (item.kind === "output") {
        begun(tasks, item.taskId).text += Buffer.from(item.chunk.data).toString();
      } else if (item.kind === "ended") {
        begun(tasks, item.task.id).ended = toJson(v1.BackgroundTaskSchema, item.task);
      } else {
        throw new Error(`gone: ${item.taskId}`);
      }
    }
    return { result: { tasks: [...tasks.values()] } };
  },

  abortedRun: async ({ client, signal }, { once, reason, ...fields }) => {
    const options = toSpawnOptions(v1.SpawnRequestSchema, fields) as unknown as SpawnOptions;
    const abort = new AbortController();
    const either = AbortSignal.any([signal, abort.signal]);
    const run = client.run({ ...options, signal: either });
    const file = once as string;
    await until(`${file} has content`, () => {
      signal.throwIfAborted();
      return (existsSync(file) && statSync(file).size > 0) || undefined;
    });
    abort.abort(reason);
    const thrown = await run.then(
      () => "nothing",
      (error: unknown) => error,
    );
    if (thrown !== reason) {
      throw new Error(`the run rejects with ${String(thrown)}`);
    }
    return { result: {} };
  },

  output: async ({ client, signal, during }, { during: steps, ...fields }) => {
    const taskId = onlyField("output", fields, "taskId");
    const chunks: Chunk[] = [];
    for await (const chunk of client.output(taskId, { signal })) {
      if (chunks.length === 0) {
        await during(steps ?? []);
      }
      chunks.push(chunk);
    }
    return { result: texts(chunks) };
  },

  work: async (scene, { requests, during, then, ...others }) => {
    if (Object.keys(others).length > 0) {
      throw new Error(`work does not know ${Object.keys(others).join(", ")}`);
    }
    const result = await worked(scene, requests, during ?? [], then ?? []);
    return { result, stores: (result["joined"] as { task: { id: string } }).task.id };
  },

  watchEvents: async (scene, { count, during, ...fields }) => {
    const watch = withPosition(toOptions(v1.WatchEventsRequestSchema, fields)) as WatchOptions;
    const events = await watched(scene, watch, Number(count), during ?? []);
    const result = { events: events.map((event) => toJson(v1.TaskEventSchema, event)) };
    return { result, stores: events.at(-1)?.revision.toString() };
  },

  restart: async ({ daemon }, fields) => {
    const signal = onlyField("restart", fields, "signal");
    if (signal !== "KILL" && signal !== "TERM") {
      throw new Error(`restart does not know the signal ${signal}`);
    }
    await daemon.kill(`SIG${signal}`);
    await daemon.restart();
    return { result: {} };
  },

  touch: async ({ touched }, fields) => {
    const file = onlyField("touch", fields, "file");
    writeFileSync(file, "");
    touched.add(file);
    return await Promise.resolve({ result: {} });
  },

  await: async ({ touched, signal }, fields) => {
    const file = onlyField("await", fields, "file");
    await until(`${file} exists`, () => {
      signal.throwIfAborted();
      return existsSync(file) && (touched.has(file) || statSync(file).size > 0) ? true : undefined;
    });
    return { result: {} };
  },

  gone: async (_, fields) => {
    const file = onlyField("gone", fields, "file");
    const pids = readFileSync(file, "utf8").trim().split("\n").map(Number);
    const left = pids.filter((pid) => existsSync(`/proc/${pid.toString()}`));
    if (left.length > 0) {
      throw new Error(`still alive: ${left.join(", ")}`);
    }
    return await Promise.resolve({ result: {} });
  },
};

/** The options of a stream: `after` sets both fields of the position. */
function withPosition({ afterRevision, epoch, ...rest }: Options): Options {
  const after = epoch === undefined ? afterRevision : { revision: afterRevision ?? 0n, epoch };
  return defined({ ...rest, after });
}

interface FollowedTask extends JsonObject {
  id: string;
  text: string;
  ended?: JsonValue;
}

function begun(tasks: ReadonlyMap<string, FollowedTask>, id: string): FollowedTask {
  const task = tasks.get(id);
  if (task === undefined) {
    throw new Error(`${id} did not begin`);
  }
  return task;
}

function without(options: Options, name: string): Options {
  return Object.fromEntries(Object.entries(options).filter(([key]) => key !== name));
}

/** The only field of a step that is no call: a string. */
function onlyField(step: string, fields: JsonObject, name: string): string {
  const { [name]: value, ...others } = fields;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined || typeof value !== "string") {
    throw new Error(`${step} takes a string ${name} and nothing else`);
  }
  return value;
}

function endedJson({ task, reason }: AttachEnd): JsonObject {
  const ended = create(v1.AttachEndedSchema, { task, reason });
  return toJson(v1.AttachEndedSchema, ended) as JsonObject;
}

function texts(chunks: readonly Chunk[]): { stdout: string; stderr: string } {
  const of = (wanted: OutputStream): string =>
    Buffer.concat(
      chunks.filter(({ stream }) => stream === wanted).map(({ data }) => data),
    ).toString();
  return { stdout: of(OutputStream.STDOUT), stderr: of(OutputStream.STDERR) };
}

/** The responses to a worker. The other steps are done once it has joined; then it sends the rest. */
async function worked(
  scene: Scene,
  requests: unknown,
  steps: unknown,
  then: unknown,
): Promise<JsonObject> {
  const result: JsonObject & { cancels: JsonValue[]; messages: JsonValue[] } = {
    cancels: [],
    messages: [],
  };
  let join = (): void => undefined;
  const joined = new Promise<void>((resolve) => {
    join = resolve;
  });
  const read = (request: unknown): v1.WorkRequest =>
    fromJson(v1.WorkRequestSchema, request as JsonValue);
  async function* sent(): AsyncGenerator<v1.WorkRequest> {
    yield* (requests as unknown[]).map(read);
    await joined;
    await scene.during(steps);
    yield* (then as unknown[]).map(read);
  }
  for await (const response of scene.client.work(sent(), { signal: scene.signal })) {
    const { joined, cancel, message, acknowledged, ended } = toJson(
      v1.WorkResponseSchema,
      response,
    ) as Record<string, JsonValue | undefined>;
    if (joined !== undefined) {
      result["joined"] = joined;
      join();
    }
    if (cancel !== undefined) {
      result.cancels.push(cancel);
    }
    if (message !== undefined) {
      result.messages.push(message);
    }
    if (acknowledged !== undefined) {
      result["acknowledged"] = (acknowledged as JsonObject)["sequence"] ?? null;
    }
    if (ended !== undefined) {
      result["ended"] = ended;
    }
  }
  return result;
}

/** The first events of a watch. The other steps are done once its first bookmark has arrived. */
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
