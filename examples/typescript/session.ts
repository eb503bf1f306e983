/**
 * The background half of an agent SDK's session, on Heeler: it starts shells and subagents, cancels them
 * by id, moves foreground tasks to the background, counts live tasks, and reports when none is left.
 *
 * It adds an emitter of events to the session handle of the client, and owns only the latest counts. The
 * daemon has the tasks and counts them, so a second session object with the same id, in this process or
 * another, has the same counts.
 */
import { EventEmitter } from "node:events";

import {
  type CancelResult,
  type HeelerClient,
  type InSession,
  type RunOptions,
  type RunResult,
  type Session,
  type SessionCounts,
  type SpawnOptions,
  type Stream,
  TaskEventType,
  TaskKind,
  type WatchItem,
} from "@heeler/client";

/** The events of a session. */
export interface SessionEvents {
  /** The number of live tasks has changed. */
  backgroundTasksChanged: [counts: SessionCounts];
  /** No live task is left. */
  idle: [];
  /** The event stream of the session failed. */
  error: [error: unknown];
}

/** A conversation whose background tasks run on Heeler. */
export class AgentSession extends EventEmitter<SessionEvents> implements AsyncDisposable {
  readonly #client: HeelerClient;
  readonly #session: Session;
  readonly #abort = new AbortController();
  #counts: SessionCounts = { agents: 0, shells: 0, hosted: 0 };
  #following: Promise<void> = Promise.resolve();

  private constructor(client: HeelerClient, sessionId: string) {
    super();
    this.#client = client;
    this.#session = client.session(sessionId);
  }

  /** Opens a session. Tasks that are live already are counted. */
  static async open(client: HeelerClient, sessionId: string): Promise<AgentSession> {
    const session = new AgentSession(client, sessionId);
    await session.#follow();
    return session;
  }

  /** The number of live tasks according to the events so far. */
  get backgroundTasks(): SessionCounts {
    return this.#counts;
  }

  /** Starts a subagent in the background and returns its id. */
  async startAgent(options: InSession<SpawnOptions>): Promise<string> {
    return (await this.#session.spawn({ ...options, kind: "agent" })).id;
  }

  /** Starts a shell in the background and returns its id. */
  async startShell(options: InSession<SpawnOptions>): Promise<string> {
    return (await this.#session.spawn({ ...options, kind: "shell" })).id;
  }

  /**
   * Runs a shell in the foreground and returns when it is finished or in the background. Aborting the
   * signal, as a user's interrupt does, stops it.
   */
  async runShell(options: InSession<RunOptions>): Promise<RunResult> {
    return await this.#session.run({ ...options, kind: "shell" });
  }

  /** Moves the foreground tasks to the background and returns their ids. */
  async moveToBackground(reason?: string): Promise<string[]> {
    const results = await this.#client.detach({ sessionId: this.#session.id }, { reason });
    return results.flatMap(({ task }) => (task === undefined ? [] : [task.id]));
  }

  /** Cancels a task and returns when no process of it is left. The session stays usable. */
  async cancelBackgroundTask(agentId: string, reason?: string): Promise<CancelResult> {
    const actor = `session ${this.#session.id}`;
    return await this.#client.cancelBackgroundTask(agentId, { reason, actor });
  }

  /** Waits until no task is live. */
  async idle(signal?: AbortSignal): Promise<void> {
    await this.#session.waitUntilIdle({ signal });
  }

  /** Stops watching. The tasks continue. */
  async close(): Promise<void> {
    this.#abort.abort();
    await this.#following;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Returns once the live tasks are known, and continues in the background. */
  async #follow(): Promise<void> {
    const items = this.#session.watch({ initialState: true, signal: this.#abort.signal });
    for (let next; (next = await items.next()).done !== true;) {
      if (next.value.kind === "initial") {
        this.#countOne(next.value.task.spec?.kind);
      } else {
        // The bookmark after the initial state.
        break;
      }
    }
    this.#following = this.#emitAll(items);
  }

  /** Emits counts that differ from the latest ones: a task that becomes stale changes none. */
  #changeCounts({ agents, shells, hosted }: SessionCounts): void {
    const { agents: oldAgents, shells: oldShells, hosted: oldHosted } = this.#counts;
    if (agents !== oldAgents || shells !== oldShells || hosted !== oldHosted) {
      this.#counts = { agents, shells, hosted };
      this.emit("backgroundTasksChanged", this.#counts);
    }
  }

  #countOne(kind: TaskKind | undefined): void {
    const counts = this.#counts;
    switch (kind) {
      case TaskKind.AGENT:
        this.#counts = { ...counts, agents: counts.agents + 1 };
        break;
      case TaskKind.HOSTED:
        this.#counts = { ...counts, hosted: counts.hosted + 1 };
        break;
      case TaskKind.SHELL:
      case TaskKind.UNSPECIFIED:
      case undefined:
        this.#counts = { ...counts, shells: counts.shells + 1 };
    }
  }

  async #emitAll(items: Stream<WatchItem>): Promise<void> {
    try {
      for await (const item of items) {
        if (item.kind !== "event") {
          continue;
        }
        const { type, sessionActivity } = item.event;
        if (type === TaskEventType.SESSION_IDLE) {
          this.emit("idle");
        } else if (sessionActivity !== undefined) {
          this.#changeCounts(sessionActivity);
        }
      }
    } catch (error) {
      if (!this.#abort.signal.aborted) {
        this.emit("error", error);
      }
    }
  }
}
