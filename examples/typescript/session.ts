/**
 * The background half of an agent SDK's session, on Heeler: it starts shells and subagents, cancels them
 * by id, tells how many there are, and knows when all are done.
 *
 * It owns a view of its session's live tasks and nothing else: the daemon has the tasks, and a second
 * session object of the same id, in this process or in another, sees the same.
 */
import { EventEmitter, once } from "node:events";

import {
  type BackgroundTask,
  type CancelResult,
  type HeelerClient,
  type SpawnOptions,
  TaskEventType,
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

/** A conversation whose background work Heeler has. */
export class AgentSession extends EventEmitter<SessionEvents> {
  readonly #client: HeelerClient;
  readonly #abort = new AbortController();
  readonly #live = new Map<string, TaskKind>();
  /** The latest revision of this session that has been taken in. */
  #seen = 0n;
  /** Spawns that have not been answered: the session is not idle meanwhile. */
  #starting = 0;
  #told = NONE;
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

  /** How many tasks are live. */
  get backgroundTasks(): TaskCounts {
    const count = (kind: TaskKind): number =>
      [...this.#live.values()].filter((live) => live === kind).length;
    return {
      agents: count(TaskKind.AGENT),
      shells: count(TaskKind.SHELL),
      hosted: count(TaskKind.HOSTED),
    };
  }

  /** Starts a subagent in the background, and gives its id. */
  async startAgent(options: SpawnOptions): Promise<string> {
    return await this.#start({ ...options, kind: TaskKind.AGENT });
  }

  /** Starts a shell in the background, and gives its id. */
  async startShell(options: SpawnOptions): Promise<string> {
    return await this.#start({ ...options, kind: TaskKind.SHELL });
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
    this.#starting += 1;
    this.#isIdle = false;
    try {
      const { task } = await this.#client.spawnResponse({ ...options, sessionId: this.sessionId });
      if (task === undefined) {
        throw new Error("the daemon's answer has no task");
      }
      // The watch may have been faster; then it also knows whether the task is over by now.
      if (task.revision > this.#seen) {
        this.#live.set(task.id, task.kind);
      }
      return task.id;
    } finally {
      this.#starting -= 1;
      this.#tell();
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
    this.#isIdle = this.#live.size === 0;
    this.#told = this.backgroundTasks;
    this.#following = this.#followOn(items);
  }

  async #followOn(items: AsyncIterable<WatchItem>): Promise<void> {
    try {
      for await (const item of items) {
        this.#take(item);
        this.#tell();
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
        this.#live.set(item.task.id, item.task.kind);
        break;
      case "event":
        this.#seen = item.event.revision;
        this.#takeEvent(item.event.type, item.event.task);
        break;
      case "bookmark":
        this.#seen = item.bookmark.revision;
        break;
    }
  }

  #takeEvent(type: TaskEventType, task: BackgroundTask | undefined): void {
    if (task === undefined) {
      return;
    }
    if (type === TaskEventType.ENDED || type === TaskEventType.REMOVED) {
      this.#live.delete(task.id);
    } else {
      this.#live.set(task.id, task.kind);
    }
  }

  #tell(): void {
    const counts = this.backgroundTasks;
    const { agents, shells, hosted } = this.#told;
    if (counts.agents !== agents || counts.shells !== shells || counts.hosted !== hosted) {
      this.#told = counts;
      this.emit("backgroundTasksChanged", counts);
    }
    const isBusy = this.#starting > 0 || this.#live.size > 0;
    const becameIdle = !isBusy && !this.#isIdle;
    this.#isIdle = !isBusy;
    if (becameIdle) {
      this.emit("idle");
    }
  }
}
