/** The position of a watch in the journal: messages in, items out. Pure. */
import { create } from "@bufbuild/protobuf";

import {
  type Bookmark,
  BookmarkSchema,
  type WatchEventsRequest,
  WatchEventsRequestSchema,
  type WatchEventsResponse,
} from "../gen/heeler/v1/index.js";
import { type BackgroundTask, received, type TaskEvent } from "../answers.js";

/** An item of a watch. */
export type WatchItem =
  /** A live task of the initial state. All of them come before the first bookmark. */
  | { readonly kind: "initial"; readonly task: BackgroundTask }
  | { readonly kind: "event"; readonly event: TaskEvent }
  /** The progress of the stream. Store it in order to resume after a crash of the watcher. */
  | { readonly kind: "bookmark"; readonly bookmark: Bookmark };

/**
 * The position of a watch.
 *
 * The initial state is given only when it is complete. One that breaks off is requested again, and a
 * part of the old one could name tasks that have ended since.
 */
export class Cursor {
  /** All items up to here have been given. Undefined until the daemon has sent a position. */
  #position: Bookmark | undefined;
  #initial: BackgroundTask[] = [];

  constructor(private readonly first: WatchEventsRequest) {}

  /** The request to send now or after a break. */
  request(): WatchEventsRequest {
    if (this.#position === undefined) {
      return this.first;
    }
    return create(WatchEventsRequestSchema, {
      ...this.first,
      afterRevision: this.#position.revision,
      initialState: false,
      epoch: this.#position.epoch,
    });
  }

  /** Drops an initial state that is not complete. To be called when the connection breaks. */
  dropPartialState(): void {
    this.#initial = [];
  }

  /** Takes a message, and returns the items for the consumer. */
  take({ item }: WatchEventsResponse): WatchItem[] {
    switch (item.case) {
      case "initial":
        this.#initial.push(received(item.value));
        return [];
      case "event":
        return this.#takeEvent(received(item.value));
      case "bookmark":
        return this.#takeBookmark(item.value);
      case undefined:
        // An item that a newer daemon sends to newer clients.
        return [];
    }
  }

  #takeEvent(event: TaskEvent): WatchItem[] {
    if (this.#position !== undefined && event.revision <= this.#position.revision) {
      return [];
    }
    const epoch = this.#position?.epoch ?? this.first.epoch;
    this.#position = create(BookmarkSchema, { revision: event.revision, epoch });
    return [{ kind: "event", event }];
  }

  #takeBookmark(bookmark: Bookmark): WatchItem[] {
    const items: WatchItem[] = this.#initial.map((task) => ({ kind: "initial", task }));
    this.#initial = [];
    if (this.#position === undefined || bookmark.revision >= this.#position.revision) {
      this.#position = bookmark;
      items.push({ kind: "bookmark", bookmark });
    }
    return items;
  }
}
