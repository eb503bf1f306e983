/** The position of a stream over many tasks: messages in, items out. Pure. */
import { create } from "@bufbuild/protobuf";

import { type BackgroundTask, received } from "../answers.js";
import {
  type FollowOutputRequest,
  FollowOutputRequestSchema,
  type FollowOutputResponse,
  OutputCursorSchema,
} from "../gen/heeler/v1/index.js";
import { toMessage } from "../options/message.js";
import { type Chunk, toChunks } from "./output.js";

/** An item of a stream over many tasks. */
export type FollowItem =
  /** The stream begins to follow this task. Not repeated after a break. */
  | { readonly kind: "task"; readonly task: BackgroundTask }
  /** A piece of the output of one task, which directly follows the one before it of the same task. */
  | { readonly kind: "output"; readonly taskId: string; readonly chunk: Chunk }
  /** A task is finished, and all its output was given. */
  | { readonly kind: "ended"; readonly task: BackgroundTask }
  /** A task does not exist any more, or never did. */
  | { readonly kind: "gone"; readonly taskId: string };

/**
 * The position of a stream over many tasks.
 *
 * The tasks that are there already are given only when all of them are known. A beginning that breaks off
 * is requested again, and a part of the old one could name tasks that have ended since.
 */
export class FollowCursor {
  /** The revision and the epoch to resume after. Undefined until the first bookmark. */
  #position: { revision: bigint; epoch: string } | undefined;
  #beginning: FollowItem[] = [];
  /** The offset of each task that is followed. Undefined: where it was to begin. */
  readonly #offsets = new Map<string, bigint | undefined>();
  #isFinished = false;

  constructor(private readonly first: FollowOutputRequest) {}

  /** True after the last message. */
  get isFinished(): boolean {
    return this.#isFinished;
  }

  /** The request to send now or after a break. */
  request(): FollowOutputRequest {
    if (this.#position === undefined) {
      return this.first;
    }
    return create(FollowOutputRequestSchema, {
      ...this.first,
      cursors: [...this.#offsets].map(([taskId, offset]) =>
        toMessage(OutputCursorSchema, { taskId, offset }),
      ),
      afterRevision: this.#position.revision,
      epoch: this.#position.epoch,
      includeFinished: false,
    });
  }

  /** Drops a beginning that is not complete. To be called when the connection breaks. */
  dropPartialState(): void {
    if (this.#position === undefined) {
      this.#beginning = [];
      this.#offsets.clear();
    }
  }

  /** Takes a message, and returns the items for the consumer. */
  take(message: FollowOutputResponse): FollowItem[] {
    const items = this.#items(message);
    if (this.#position === undefined) {
      this.#beginning.push(...items);
      return [];
    }
    if (message.revision > this.#position.revision) {
      this.#position.revision = message.revision;
    }
    return items;
  }

  #items({ item, revision }: FollowOutputResponse): FollowItem[] {
    switch (item.case) {
      case "task":
        return this.#begin(received(item.value));
      case "output": {
        const { taskId, chunks, nextOffset } = item.value;
        this.#offsets.set(taskId, nextOffset);
        return toChunks(chunks, nextOffset).map((chunk) => ({ kind: "output", taskId, chunk }));
      }
      case "ended":
        this.#offsets.delete(item.value.id);
        return [{ kind: "ended", task: received(item.value) }];
      case "gone":
        this.#offsets.delete(item.value.taskId);
        return [{ kind: "gone", taskId: item.value.taskId }];
      case "bookmark": {
        this.#position = { revision, epoch: item.value.epoch };
        const beginning = this.#beginning;
        this.#beginning = [];
        return beginning;
      }
      case "finished":
        this.#isFinished = true;
        return [];
      case undefined:
        // An item that a newer daemon sends to newer clients.
        return [];
    }
  }

  /**
   * After a break, a task that is known comes again. One that has not started begins with its first byte, also
   * if it has written more by the time of a break.
   */
  #begin(task: BackgroundTask): FollowItem[] {
    if (this.#offsets.has(task.id)) {
      return [];
    }
    const given = this.first.cursors.find(({ taskId }) => taskId === task.id);
    const first = task.startTime === undefined ? 0n : undefined;
    this.#offsets.set(task.id, given?.offset ?? first);
    return [{ kind: "task", task }];
  }
}
