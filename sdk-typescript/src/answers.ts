/**
 * The contract's messages as the client returns them: each can be written as JSON, and each task has its
 * exit code. The transport calls `complete` for every message that it receives.
 *
 * ANSWERS lists the messages that contain a task, with their types here.
 */
import {
  type DescMessage,
  type JsonValue,
  type Message,
  type MessageShape,
  toJson,
} from "@bufbuild/protobuf";

import * as v1 from "./gen/heeler/v1/index.js";

/** A task as it was at its `revision`. */
export interface BackgroundTask extends v1.BackgroundTask {
  /**
   * The code that the leader exited with. Undefined if a signal ended it, if it never ran, or if it
   * still runs: `outcome` has the details.
   */
  readonly exitCode: number | undefined;
}

/** The answer of `spawnResponse`. */
export interface SpawnResponse extends Omit<v1.SpawnResponse, "task"> {
  task?: BackgroundTask;
}

/** The result of a cancel for one task. */
export interface CancelResult extends Omit<v1.CancelResult, "task"> {
  task?: BackgroundTask;
}

/** The result of a detach for one task. */
export interface DetachResult extends Omit<v1.DetachResult, "task"> {
  task?: BackgroundTask;
}

/** The answer of `listPage`. */
export interface ListResponse extends Omit<v1.ListResponse, "tasks"> {
  tasks: BackgroundTask[];
}

/** The answer of `inspect`. */
export interface InspectResponse extends Omit<v1.InspectResponse, "task"> {
  task?: BackgroundTask;
}

/** The answer of `wait`. */
export interface WaitResponse extends Omit<v1.WaitResponse, "met" | "pending"> {
  met: BackgroundTask[];
  pending: BackgroundTask[];
}

interface UpdateTaskResponse extends Omit<v1.UpdateTaskResponse, "task"> {
  task?: BackgroundTask;
}

/** An event of a watch. */
export interface TaskEvent extends Omit<v1.TaskEvent, "task"> {
  task?: BackgroundTask;
}

interface CancelResponse extends Omit<v1.CancelResponse, "results"> {
  results: CancelResult[];
}

interface DetachResponse extends Omit<v1.DetachResponse, "results"> {
  results: DetachResult[];
}

interface Answers {
  "heeler.v1.BackgroundTask": BackgroundTask;
  "heeler.v1.SpawnResponse": SpawnResponse;
  "heeler.v1.CancelResponse": CancelResponse;
  "heeler.v1.DetachResponse": DetachResponse;
  "heeler.v1.ListResponse": ListResponse;
  "heeler.v1.InspectResponse": InspectResponse;
  "heeler.v1.WaitResponse": WaitResponse;
  "heeler.v1.UpdateTaskResponse": UpdateTaskResponse;
  "heeler.v1.TaskEvent": TaskEvent;
}

/** The type of a received message. */
export type Answer<M extends Message> = M["$typeName"] extends keyof Answers
  ? Answers[M["$typeName"]]
  : M;

/** Gives a received message its type. */
export function received<M extends Message>(message: M): Answer<M> {
  return message as unknown as Answer<M>;
}

/**
 * Adds `toJSON` to a message and every message in it, and the exit code to every task. `toJSON` is not
 * enumerable: it is no field, and a copy by spreading does not have it.
 */
export function complete<D extends DescMessage>(type: D, message: MessageShape<D>): void {
  Object.defineProperty(message, "toJSON", { value: writerOf(type), configurable: true });
  if (type.typeName === v1.BackgroundTaskSchema.typeName) {
    const result = (message as unknown as v1.BackgroundTask).outcome?.result;
    const exitCode = result?.case === "exitCode" ? result.value : undefined;
    Object.assign(message, { exitCode });
  }
  const values = message as unknown as Readonly<Record<string, unknown>>;
  for (const field of type.fields) {
    if (field.message !== undefined) {
      const members = field.oneof === undefined ? values : chosen(values[field.oneof.localName]);
      for (const nested of messagesIn(field.fieldKind, members[field.localName])) {
        complete(field.message, nested);
      }
    }
  }
}

/** The member that a oneof has, by its name. */
function chosen(oneof: unknown): Readonly<Record<string, unknown>> {
  const { case: name, value } = oneof as { case: string | undefined; value?: unknown };
  return name === undefined ? {} : { [name]: value };
}

function messagesIn(kind: string, value: unknown): Iterable<Message> {
  if (value === undefined) {
    return [];
  }
  switch (kind) {
    case "list":
      return value as Message[];
    case "map":
      return Object.values(value as Record<string, Message>);
    default:
      return [value as Message];
  }
}

const writers = new Map<string, () => JsonValue>();

/** The `toJSON` of a type: protobuf's JSON, with the default values written out. */
function writerOf(type: DescMessage): () => JsonValue {
  let writer = writers.get(type.typeName);
  if (writer === undefined) {
    writer = function (this: Message): JsonValue {
      return toJson(type, this, { alwaysEmitImplicit: true });
    };
    writers.set(type.typeName, writer);
  }
  return writer;
}
