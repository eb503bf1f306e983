/** Queues: how many of their tasks run at a time, and whether they let any begin. */
import { create } from "@bufbuild/protobuf";

import type { CallOptions, Caller } from "./call.js";
import { type Queue, UpdateQueueRequestSchema } from "./gen/heeler/v1/background_tasks_pb.js";
import { present } from "./present.js";

/** What to change of a queue. What is not said stays as it is. */
export interface QueueOptions extends CallOptions {
  /** How many of its tasks may run at a time, 1 to 10,000. A new queue has one. */
  readonly slots?: number | undefined;
  /** Whether it lets no further task begin. */
  readonly paused?: boolean | undefined;
}

export async function updateQueue(
  caller: Caller,
  name: string,
  options: QueueOptions,
): Promise<Queue> {
  const { slots, paused } = options;
  const request = create(UpdateQueueRequestSchema, { name, slots, paused });
  const answer = await caller.call("always", options, (stub, call) =>
    stub.updateQueue(request, call),
  );
  return present("queue", answer.queue);
}

export async function listQueues(caller: Caller, options: CallOptions): Promise<Queue[]> {
  const answer = await caller.call("always", options, (stub, call) => stub.listQueues({}, call));
  return answer.queues;
}
