/** What a watch has seen, and so what it has to ask for next. Pure: messages in, items out. */
import { create } from "@bufbuild/protobuf";

import {
  type WatchEventsRequest,
  WatchEventsRequestSchema,
  type WatchEventsResponse,
} from "./gen/heeler/v1/background_tasks_pb.js";
import { type Bookmark, BookmarkSchema, type TaskEvent } from "./gen/heeler/v1/event_pb.js";
import type { BackgroundTask } from "./gen/heeler/v1/task_pb.js";

/** What a watch gives. */
export type WatchItem =
  /** A live task as the initial state has it: all of them come before the first bookmark. */
  | { readonly kind: "initial"; readonly task: BackgroundTask }
  /** Something that happened. */
  | { readonly kind: "event"; readonly event: TaskEvent }
  /** How far the stream has come: what to keep in order to resume after a crash of the watcher. */
  | { readonly kind: "bookmark"; readonly bookmark: Bookmark };

/**
 * The place of a watch in the journal.
 *
 * The initial state is given only once it is complete: one that breaks off is asked for anew, and a
 * part of the old one beside the new one could name tasks that ended in between.
 */
export class Cursor {
  /** Everything up to here has been given. Undefined until the daemon has said where it stands. */
  #seen: Bookmark | undefined;
  #initial: BackgroundTask[] = [];

  constructor(private readonly first: WatchEventsRequest) {}

  /** What to ask for, now or after a break. */
  request(): WatchEventsRequest {
    if (this.#seen === undefined) {
      return this.first;
    }
    return create(WatchEventsRequestSchema, {
      ...this.first,
      afterRevision: this.#seen.revision,
      initialState: false,
      stateId: this.#seen.stateId,
    });
  }

  /** The connection broke: what was incomplete is worth nothing. */
  broke(): void {
    this.#initial = [];
  }

  /** Takes a message in, and gives what the consumer is to have. */
  take({ item }: WatchEventsResponse): WatchItem[] {
    switch (item.case) {
      case "initial":
        this.#initial.push(item.value);
        return [];
      case "event":
        return this.#takeEvent(item.value);
      case "bookmark":
        return this.#takeBookmark(item.value);
      case undefined:
        // From a newer daemon, and for newer clients.
        return [];
    }
  }

  #takeEvent(event: TaskEvent): WatchItem[] {
    if (this.#seen !== undefined && event.revision <= this.#seen.revision) {
      return [];
    }
    const stateId = this.#seen?.stateId ?? this.first.stateId;
    this.#seen = create(BookmarkSchema, { revision: event.revision, stateId });
    return [{ kind: "event", event }];
  }

  #takeBookmark(bookmark: Bookmark): WatchItem[] {
    const items: WatchItem[] = this.#initial.map((task) => ({ kind: "initial", task }));
    this.#initial = [];
    if (this.#seen === undefined || bookmark.revision >= this.#seen.revision) {
      this.#seen = bookmark;
      items.push({ kind: "bookmark", bookmark });
    }
    return items;
  }
}
