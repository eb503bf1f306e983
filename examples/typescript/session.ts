/**
 * The background half of an agent SDK's session, on Heeler: it starts shells and subagents, cancels them
 * by id, moves foreground tasks to the background, counts live tasks, and reports when none is left.
 *
 * It owns only the latest counts of its session. The daemon has the tasks and counts them, so a second
 * session object with the same id, in this process or another, has the same counts.
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

/** The number of live tasks, by kind. */
export interface TaskCounts {
  readonly agents: number;
  readonly shells: number;
}

/** The events of a session. */
export interface SessionEvents {
  /** The number of live tasks has changed. */
  backgroundTasksChanged: [counts: TaskCounts];
  /** No live task is left. */
  idle: [];
  /** The event stream of the session failed. */
  error: [error: unknown];
}

const NONE: TaskCounts = { agents: 0, shells: 0 };

function isSame(a: TaskCounts, b: TaskCounts): boolean {
  return a.agents === b.agents && a.shells === b.shells;
}

function withOneMore(counts: TaskCounts, kind: TaskKind | undefined): TaskCounts {
  switch (kind) {
    case TaskKind.AGENT:
      return { ...counts, agents: counts.agents + 1 };
    case TaskKind.SHELL:
    case TaskKind.UNSPECIFIED:
    case undefined:
      return { ...counts, shells: counts.shells + 1 };
  }
}

/** A conversation whose background tasks run on Heeler. */
export class AgentSession extends EventEmitter<SessionEvents> {
  readonly #client: HeelerClient;
  readonly #abort = new AbortController();
  #counts = NONE;
  /** The latest revision received. */
  #received = 0n;
  /** Starts without an answer, and runs in progress: the session is not idle during them. */
  #starting = 0;
  /** The revision of the latest answer. An answer may arrive before its event is counted. */
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

  /** Opens a session. Tasks that are live already are counted. */
  static async open(client: HeelerClient, sessionId: string): Promise<AgentSession> {
    const session = new AgentSession(client, sessionId);
    await session.#follow();
    return session;
  }

  /** The number of live tasks according to the events so far. */
  get backgroundTasks(): TaskCounts {
    return this.#counts;
  }

  /** Starts a subagent in the background and returns its id. */
  async startAgent(options: SpawnOptions): Promise<string> {
    return await this.#start({ ...options, kind: "agent" });
  }

  /** Starts a shell in the background and returns its id. */
  async startShell(options: SpawnOptions): Promise<string> {
    return await this.#start({ ...options, kind: "shell" });
  }

  /**
   * Runs a shell in the foreground and returns when it is finished or in the background. Aborting the
   * signal, as a user's interrupt does, stops it.
   */
  async runShell(options: RunOptions): Promise<RunResult> {
    const { sessionId } = this;
    return await this.#during(async () => {
      const result = await this.#client.run({ ...options, kind: "shell", sessionId });
      this.#await(result.task);
      return result;
    });
  }

  /** Moves the foreground tasks to the background and returns their ids. */
  async moveToBackground(reason?: string): Promise<string[]> {
    const { sessionId } = this;
    const { results } = await this.#client.detach({ sessionId }, { reason });
    return results.flatMap(({ task }) => (task === undefined ? [] : [task.id]));
  }

  /** Cancels a task and returns when no process of it is left. The session stays usable. */
  async cancelBackgroundTask(agentId: string, reason?: string): Promise<CancelResult> {
    const actor = `session ${this.sessionId}`;
    return await this.#client.cancelBackgroundTask(agentId, { reason, actor });
  }

  /** Waits until no task is live. */
  async idle(signal?: AbortSignal): Promise<void> {
    if (!this.#isIdle) {
      await once(this, "idle", { signal });
    }
  }

  /** Stops watching. The tasks continue. */
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

  /** Does work that may start a task. The session is not idle during it. */
  async #during<T>(work: () => Promise<T>): Promise<T> {
    this.#starting += 1;
    this.#isIdle = false;
    try {
      return await work();
    } finally {
      this.#starting -= 1;
      this.#emitIdle();
    }
  }

  #await({ revision }: BackgroundTask): void {
    if (revision > this.#awaited) {
      this.#awaited = revision;
    }
  }

  /** Returns once the live tasks are known, and continues in the background. */
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
        this.#emitIdle();
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
        this.#counts = withOneMore(this.#counts, item.task.spec?.kind);
        break;
      case "event":
        this.#received = item.event.revision;
        if (item.event.sessionActivity !== undefined) {
          const { agents, shells } = item.event.sessionActivity;
          this.#counts = { agents, shells };
        }
        break;
      case "bookmark":
        this.#received = item.bookmark.revision;
        break;
    }
  }

  #emitIdle(): void {
    const isAwaited = this.#starting > 0 || this.#received < this.#awaited;
    const isIdle = !isAwaited && isSame(this.#counts, NONE);
    const becameIdle = isIdle && !this.#isIdle;
    this.#isIdle = isIdle;
    if (becameIdle) {
      this.emit("idle");
    }
  }
}
