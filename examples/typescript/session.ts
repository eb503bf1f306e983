/**
 * The background half of an agent SDK's session, on Heeler: it starts shells and subagents, cancels them
 * by id, moves what runs in the foreground there, tells how many there are, and knows when all are done.
 *
 * It owns what it was last told of its session and nothing else: the daemon has the tasks and counts
 * them, and a second session object of the same id, in this process or in another, sees the same.
 */
import { EventEmitter, once } from "node:events";

import {
  type BackgroundTask,
  type CancelResult,
  type HeelerClient,
  type RunOptions,
  type RunResult,
  type SpawnOptions,
  TaskKind,
  type WatchItem,
} from "@heeler/client";

/** How many tasks are live, by kind. */
export interface TaskCounts {
  readonly agents: number;
  readonly shells: number;
  readonly hosted: number;
}

/** What a session tells. */
export interface SessionEvents {
  /** The number of live tasks has changed. */
  backgroundTasksChanged: [counts: TaskCounts];
  /** The last of them is over. */
  idle: [];
  /** The session can no longer be followed. */
  error: [error: unknown];
}

const NONE: TaskCounts = { agents: 0, shells: 0, hosted: 0 };

function isSame(a: TaskCounts, b: TaskCounts): boolean {
  return a.agents === b.agents && a.shells === b.shells && a.hosted === b.hosted;
}

function withOneMore(counts: TaskCounts, kind: TaskKind): TaskCounts {
  switch (kind) {
    case TaskKind.AGENT:
      return { ...counts, agents: counts.agents + 1 };
    case TaskKind.HOSTED:
      return { ...counts, hosted: counts.hosted + 1 };
    case TaskKind.SHELL:
    case TaskKind.UNSPECIFIED:
      return { ...counts, shells: counts.shells + 1 };
  }
}

/** A conversation whose background work Heeler has. */
export class AgentSession extends EventEmitter<SessionEvents> {
  readonly #client: HeelerClient;
  readonly #abort = new AbortController();
  #counts = NONE;
  /** The latest revision that has been taken in. */
  #seen = 0n;
  /** Starts that have not been answered, and runs: the session is not idle meanwhile. */
  #starting = 0;
  /** Nor is it before what was answered has been counted: an answer may be faster than its event. */
  #awaited = 0n;
  #isIdle = true;
  #following: Promise<void> = Promise.resolve();

  private constructor(
    client: HeelerClient,
    readonly sessionId: string,
  ) {
    super();
    this.#client = client;
  }

  /** Opens a session, new or not: tasks that are live already are counted from the start. */
  static async open(client: HeelerClient, sessionId: string): Promise<AgentSession> {
    const session = new AgentSession(client, sessionId);
    await session.#follow();
    return session;
  }

  /** How many tasks are live, as far as the daemon has told yet. */
  get backgroundTasks(): TaskCounts {
    return this.#counts;
  }

  /** Starts a subagent in the background, and gives its id. */
  async startAgent(options: SpawnOptions): Promise<string> {
    return await this.#start({ ...options, kind: TaskKind.AGENT });
  }

  /** Starts a shell in the background, and gives its id. */
  async startShell(options: SpawnOptions): Promise<string> {
    return await this.#start({ ...options, kind: TaskKind.SHELL });
  }

  /**
   * Runs a shell in the foreground, and returns when it is over or in the background. Aborting the signal,
   * as a user's interrupt would, stops it.
   */
  async runShell(options: RunOptions): Promise<RunResult> {
    const { sessionId } = this;
    return await this.#during(async () => {
      const result = await this.#client.run({ ...options, kind: TaskKind.SHELL, sessionId });
      this.#await(result.task);
      return result;
    });
  }

  /** Moves what runs in the foreground into the background, and gives the ids. */
  async moveToBackground(reason?: string): Promise<string[]> {
    const { sessionId } = this;
    const { results } = await this.#client.detach({ sessionId }, { reason });
    return results.flatMap(({ task }) => (task === undefined ? [] : [task.id]));
  }

  /** Cancels a task, and returns when not one process of it is left. The session goes on. */
  async cancelBackgroundTask(agentId: string, reason?: string): Promise<CancelResult> {
    const actor = `session ${this.sessionId}`;
    return await this.#client.cancelBackgroundTask(agentId, { reason, actor });
  }

  /** Returns when no task is live: at once if none is. */
  async idle(signal?: AbortSignal): Promise<void> {
    if (!this.#isIdle) {
      await once(this, "idle", { signal });
    }
  }

  /** Stops following. The tasks run on. */
  async close(): Promise<void> {
    this.#abort.abort();
    await this.#following;
  }

  async #start(options: SpawnOptions): Promise<string> {
    return await this.#during(async () => {
      const { task } = await this.#client.spawnResponse({ ...options, sessionId: this.sessionId });
      if (task === undefined) {
        throw new Error("the daemon's answer has no task");
      }
      this.#await(task);
      return task.id;
    });
  }

  /** Does what may start a task: the session is not idle meanwhile. */
  async #during<T>(work: () => Promise<T>): Promise<T> {
    this.#starting += 1;
    this.#isIdle = false;
    try {
      return await work();
    } finally {
      this.#starting -= 1;
      this.#tellIdle();
    }
  }

  #await({ revision }: BackgroundTask): void {
    if (revision > this.#awaited) {
      this.#awaited = revision;
    }
  }

  /** Returns once the live tasks are known; the rest goes on behind. */
  async #follow(): Promise<void> {
    const filter = { sessionId: this.sessionId };
    const { signal } = this.#abort;
    const items = this.#client.watch({ initialState: true, filter, signal });
    for (let isKnown = false; !isKnown;) {
      const { value } = await items.next();
      if (value !== undefined) {
        this.#take(value);
        isKnown = value.kind === "bookmark";
      }
    }
    this.#isIdle = isSame(this.#counts, NONE);
    this.#following = this.#followOn(items);
  }

  async #followOn(items: AsyncIterable<WatchItem>): Promise<void> {
    try {
      for await (const item of items) {
        const before = this.#counts;
        this.#take(item);
        if (!isSame(before, this.#counts)) {
          this.emit("backgroundTasksChanged", this.#counts);
        }
        this.#tellIdle();
      }
    } catch (error) {
      if (!this.#abort.signal.aborted) {
        this.emit("error", error);
      }
    }
  }

  #take(item: WatchItem): void {
    switch (item.kind) {
      case "initial":
        this.#counts = withOneMore(this.#counts, item.task.kind);
        break;
      case "event":
        this.#seen = item.event.revision;
        if (item.event.sessionActivity !== undefined) {
          const { agents, shells, hosted } = item.event.sessionActivity;
          this.#counts = { agents, shells, hosted };
        }
        break;
      case "bookmark":
        this.#seen = item.bookmark.revision;
        break;
    }
  }

  #tellIdle(): void {
    const isAwaited = this.#starting > 0 || this.#seen < this.#awaited;
    const isIdle = !isAwaited && isSame(this.#counts, NONE);
    const becameIdle = isIdle && !this.#isIdle;
    this.#isIdle = isIdle;
    if (becameIdle) {
      this.emit("idle");
    }
  }
}
