/** Listing tasks: what to list, a page, and all pages as one iterator. */
import { create } from "@bufbuild/protobuf";

import type { CallOptions, Caller } from "./call.js";
import { type Filter, toFilter } from "./filter.js";
import { ListRequestSchema, type ListResponse } from "./gen/heeler/v1/background_tasks_pb.js";
import type { BackgroundTask } from "./gen/heeler/v1/task_pb.js";

/** What to list. A deadline counts for each page. */
export interface ListOptions extends CallOptions {
  /** Only these. */
  readonly filter?: Filter | undefined;
  /** Tasks that are over, too. `filter.states`, where set, decides alone. */
  readonly includeFinished?: boolean | undefined;
  /** How many to a page: 50 by default, at most 1000. */
  readonly pageSize?: number | undefined;
  /** The page that another page's `nextPageToken` stands for. */
  readonly pageToken?: string | undefined;
}

export async function listPage(caller: Caller, options: ListOptions): Promise<ListResponse> {
  const { filter } = options;
  const request = create(ListRequestSchema, {
    filter: filter === undefined ? undefined : toFilter(filter),
    includeFinished: options.includeFinished ?? false,
    pageSize: options.pageSize ?? 0,
    pageToken: options.pageToken ?? "",
  });
  return await caller.call("always", options, (stub, call) => stub.list(request, call));
}

/** Tasks, page after page: live ones first, then newest first. */
export async function* listAll(
  caller: Caller,
  options: ListOptions,
): AsyncGenerator<BackgroundTask, void, undefined> {
  let pageToken = options.pageToken;
  do {
    const page = await listPage(caller, { ...options, pageToken });
    yield* page.tasks;
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
}
