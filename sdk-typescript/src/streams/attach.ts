/** Attaching to a task: its output as it arrives, then the end. A break resumes at the next byte. */
import type { Caller } from "../connection/call.js";
import { present } from "../connection/failure.js";
import { type AttachEndReason, AttachRequestSchema, Placement } from "../gen/heeler/v1/index.js";
import { toMessage } from "../options/message.js";
import type { OutputStart, ViewOptions } from "../options/output.js";
import { type BackgroundTask, received } from "../answers.js";
import { type Chunk, toChunks } from "./output.js";
import { resume, type ResumeOptions } from "./resume.js";

/**
 * The options of `attach`. An attachment that is left before its end, by the signal or by leaving its
 * loop, is a disconnect: the task's `foreground.onDisconnect` applies.
 */
export interface AttachOptions extends OutputStart, ViewOptions, ResumeOptions {
  /**
   * Ends the attachment, after the output so far, if the task is already in the background, instead of
   * following it.
   */
  readonly foregroundOnly?: boolean | undefined;
}

/** An item of an attachment. */
export type AttachItem =
  /** The first item: the task when the attachment began. Not repeated after a break. */
  | { readonly kind: "attached"; readonly task: BackgroundTask }
  /** A piece of output that directly follows the one before it. */
  | { readonly kind: "output"; readonly chunk: Chunk }
  /** The last item. All output written before it has been given. */
  | AttachEnd;

/** The end of an attachment. */
export interface AttachEnd {
  readonly kind: "ended";
  /** The task at that moment. */
  readonly task: BackgroundTask;
  readonly reason: AttachEndReason;
}

/** Attaches to a task, across restarts of the daemon. */
export async function* attach(
  caller: Caller,
  taskId: string,
  options: AttachOptions,
): AsyncGenerator<AttachItem, void, undefined> {
  const { signal, giveUpAfterMs, ...fields } = options;
  const request = toMessage(AttachRequestSchema, { taskId, ...fields });
  let isAttached = false;
  const messages = resume(caller, { signal, giveUpAfterMs }, (stub, call) =>
    stub.attach(request, call),
  );
  for await (const { item } of messages) {
    switch (item.case) {
      case "attached": {
        const task = received(present("attached.task", item.value.task));
        if (!isAttached) {
          yield { kind: "attached", task };
        }
        isAttached = true;
        // A task that is detached during a break would otherwise be followed as long as it runs.
        request.foregroundOnly ||= task.placement === Placement.FOREGROUND;
        break;
      }
      case "output":
        for (const chunk of toChunks(item.value.chunks, item.value.nextOffset)) {
          yield { kind: "output", chunk };
        }
        request.start = { case: "offset", value: item.value.nextOffset };
        break;
      case "ended": {
        const task = received(present("ended.task", item.value.task));
        yield { kind: "ended", task, reason: item.value.reason };
        return;
      }
      case undefined:
        // An item that a newer daemon sends to newer clients.
        break;
    }
  }
}
