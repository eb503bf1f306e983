/**
 * A hold on a task: its output as it comes, and then the release. It reconnects, and goes on at the byte
 * where it broke.
 */
import { create } from "@bufbuild/protobuf";

import type { Caller } from "./call.js";
import { AttachRequestSchema, type ReleaseReason } from "./gen/heeler/v1/background_tasks_pb.js";
import { type BackgroundTask, Placement } from "./gen/heeler/v1/task_pb.js";
import {
  type Chunk,
  type OutputStart,
  toChunks,
  toStart,
  toView,
  type ViewOptions,
} from "./output.js";
import { present } from "./present.js";
import { resume, type ResumeOptions } from "./resume.js";

/**
 * From where to read, and for how long. Ending an attachment before the release, by the signal or by
 * leaving its loop, lets go of the task: `onHolderGone` says what follows.
 */
export interface AttachOptions extends OutputStart, ViewOptions, ResumeOptions {
  /**
   * A task that is in the background already releases at once, behind the output there is, rather than
   * be followed: for whoever spawned it in the foreground.
   */
  readonly foregroundOnly?: boolean | undefined;
}

/** What an attachment gives. */
export type AttachItem =
  /** The first: the task as it was when the hold began. Not repeated after a break. */
  | { readonly kind: "attached"; readonly task: BackgroundTask }
  /** A piece of output, right behind the one before it. */
  | { readonly kind: "output"; readonly chunk: Chunk }
  /** The last: the hold is over, and everything that was written before that has been given. */
  | Release;

/** The end of a hold. */
export interface Release {
  readonly kind: "released";
  /** The task, as it was then. */
  readonly task: BackgroundTask;
  /** Why. */
  readonly reason: ReleaseReason;
}

/** Holds a task until it is released, across every restart of the daemon. */
export async function* attach(
  caller: Caller,
  taskId: string,
  options: AttachOptions,
): AsyncGenerator<AttachItem, void, undefined> {
  const request = create(AttachRequestSchema, {
    taskId,
    start: toStart(options),
    view: toView(options),
    foregroundOnly: options.foregroundOnly ?? false,
  });
  let isAttached = false;
  const messages = resume(caller, options, (stub, call) => stub.attach(request, call));
  for await (const { item } of messages) {
    switch (item.case) {
      case "attached": {
        const task = present("attached.task", item.value.task);
        if (!isAttached) {
          yield { kind: "attached", task };
        }
        isAttached = true;
        // One that is detached while the stream is broken would be followed for as long as it runs.
        request.foregroundOnly ||= task.placement === Placement.FOREGROUND;
        break;
      }
      case "output":
        for (const chunk of toChunks(item.value.chunks, item.value.nextOffset)) {
          yield { kind: "output", chunk };
        }
        request.start = { case: "offset", value: item.value.nextOffset };
        break;
      case "released": {
        const task = present("released.task", item.value.task);
        yield { kind: "released", task, reason: item.value.reason };
        return;
      }
      case undefined:
        // From a newer daemon, and for newer clients.
        break;
    }
  }
}
