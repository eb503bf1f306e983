/** Which tasks are meant. */
import { create } from "@bufbuild/protobuf";

import {
  type TaskFilter,
  TaskFilterSchema,
  type TaskKind,
  type TaskState,
} from "./gen/heeler/v1/task_pb.js";

/** Which tasks are meant. Everything that is set must match; nothing set matches all. */
export interface Filter {
  /** One of these ids. */
  readonly taskIds?: readonly string[] | undefined;
  /** This session. */
  readonly sessionId?: string | undefined;
  /** One of these kinds. */
  readonly kinds?: readonly TaskKind[] | undefined;
  /** One of these states. */
  readonly states?: readonly TaskState[] | undefined;
  /** All of these labels, with these values. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Spawned by this task. */
  readonly parentId?: string | undefined;
}

export function toFilter(filter: Filter): TaskFilter {
  return create(TaskFilterSchema, {
    taskIds: [...(filter.taskIds ?? [])],
    sessionId: filter.sessionId ?? "",
    kinds: [...(filter.kinds ?? [])],
    states: [...(filter.states ?? [])],
    labels: { ...filter.labels },
    parentId: filter.parentId ?? "",
  });
}
