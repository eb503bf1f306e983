/** A handle on one session: its id and a client. It owns nothing: dropping it has no effect. */
import type { BackgroundTask, CancelResult } from "./answers.js";
import type { HeelerClient } from "./client.js";
import type { CallOptions } from "./connection/call.js";
import { RefusedError } from "./errors.js";
import type { SessionInfo } from "./gen/heeler/v1/index.js";
import type { Filter } from "./options/filter.js";
import type { CancelOptions, ListOptions } from "./options/requests.js";
import type { SpawnOptions } from "./options/spec.js";
import type { WatchItem } from "./streams/cursor.js";
import type { ResumeOptions } from "./streams/resume.js";
import type { RunOptions, RunResult } from "./streams/run.js";
import type { Stream } from "./streams/stream.js";
import type { WatchOptions } from "./streams/watch.js";
import type { Task } from "./task.js";
import type { Body, HostOptions } from "./work/host.js";

/** A session's own filter: it narrows the tasks of the session further. */
export type SessionFilter = Omit<Filter, "sessionId">;

/** Options of a call, for the tasks of one session. */
export type InSession<O> = DistributiveOmit<O, "sessionId" | "filter"> & FilterOf<O>;

type DistributiveOmit<O, K extends string> = O extends unknown ? Omit<O, K> : never;
type FilterOf<O> = "filter" extends keyof O
  ? { readonly filter?: SessionFilter | undefined }
  : unknown;

/** The options of a session's `cancel`. */
export type SessionCancelOptions = CancelOptions & { readonly filter?: SessionFilter | undefined };

/** The number of live tasks of a session, by kind. */
export interface SessionCounts {
  readonly agents: number;
  readonly shells: number;
  readonly hosted: number;
}

/** The tasks of one host conversation. The daemon has them: a session needs no set-up. */
export class Session {
  readonly #client: HeelerClient;

  /** @internal Use `client.session(id)`. */
  constructor(
    client: HeelerClient,
    readonly id: string,
  ) {
    if (id === "") {
      throw new TypeError("the id of a session cannot be empty");
    }
    this.#client = client;
  }

  /** Starts a task of the session, as `client.spawn` does. */
  async spawn(options: InSession<SpawnOptions>): Promise<Task> {
    return await this.#client.spawn({ ...options, sessionId: this.id });
  }

  /** Runs a command of the session in the foreground, as `client.run` does. */
  async run(options: InSession<RunOptions>): Promise<RunResult> {
    return await this.#client.run({ ...options, sessionId: this.id });
  }

  /** Runs a body as the worker of a hosted task of the session, as `client.host` does. */
  async host(options: InSession<HostOptions>, body: Body): Promise<BackgroundTask> {
    return await this.#client.host({ ...options, sessionId: this.id }, body);
  }

  /** Lists the tasks of the session, as `client.list` does. */
  list(options: InSession<ListOptions> = {}): Stream<BackgroundTask> {
    return this.#client.list({ ...options, filter: this.#narrow(options.filter) });
  }

  /** Stops the live tasks of the session, each with its whole tree. */
  async cancel(options: SessionCancelOptions = {}): Promise<CancelResult[]> {
    const { filter, ...rest } = options;
    return await this.#client.cancel(this.#narrow(filter), rest);
  }

  /**
   * Streams the events of the session, across restarts of the daemon. SESSION_IDLE is among them, unless
   * `filter` narrows them further.
   */
  watch(options: InSession<WatchOptions> = {}): Stream<WatchItem> {
    return this.#client.watch({ ...options, filter: this.#narrow(options.filter) });
  }

  /**
   * Returns the live tasks now: their number and ids by kind, since when, the latest sign of life, and
   * whether all of them are stale. Undefined if there is none.
   */
  async info(options: CallOptions = {}): Promise<SessionInfo | undefined> {
    const { sessions } = await this.#client.listSessions({ ...options, sessionId: this.id });
    return sessions[0];
  }

  /** Returns the number of tasks that are live now. */
  async counts(options: CallOptions = {}): Promise<SessionCounts> {
    const { agents = 0, shells = 0, hosted = 0 } = (await this.info(options))?.activity ?? {};
    return { agents, shells, hosted };
  }

  /**
   * Waits until no task of the session is live, across restarts of the daemon. Returns at once if none
   * is.
   */
  async waitUntilIdle(options: ResumeOptions = {}): Promise<void> {
    for (;;) {
      try {
        await this.#idle(options);
        return;
      } catch (error) {
        // The daemon has no events from before: its live tasks are looked at again.
        if (!(error instanceof RefusedError) || !EVENTS_LOST.has(error.reason)) {
          throw error;
        }
      }
    }
  }

  async #idle(options: ResumeOptions): Promise<void> {
    let isLive = false;
    const watch = { ...options, initialState: true, types: ["sessionIdle"] as const };
    for await (const { kind } of this.watch(watch)) {
      if (kind === "initial") {
        isLive = true;
      } else if (kind === "event" || !isLive) {
        return;
      }
    }
  }

  #narrow(filter: SessionFilter | undefined): Filter {
    return { ...filter, sessionId: this.id };
  }
}

const EVENTS_LOST: ReadonlySet<string | undefined> = new Set([
  "EPOCH_MISMATCH",
  "REVISION_OUT_OF_RANGE",
]);
