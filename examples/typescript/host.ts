/**
 * An agent host whose turn is over only when its background is quiet. It runs subagents as hosted tasks of
 * its session, and cancels those that fall silent: a zombie neither blocks the turn nor costs the session.
 *
 * It keeps no list of its own. The daemon has the tasks, and one watch tells of silence and of idleness.
 */
import {
  type BackgroundTask,
  type Body,
  type HeelerClient,
  type Session,
  TaskEventType,
  TaskState,
} from "@heeler/client";

/** The options of a host. */
export interface AgentHostOptions {
  /** Time without progress after which a subagent is a zombie. */
  readonly staleAfterMs: number;
  /** Times for a zombie to react to its cancel: softly, then finally. */
  readonly stop?: { readonly softGraceMs: number; readonly graceMs: number } | undefined;
}

export class AgentHost {
  /** The session, for shells and everything else. It outlives every cancel. */
  readonly session: Session;

  constructor(
    client: HeelerClient,
    sessionId: string,
    private readonly options: AgentHostOptions,
  ) {
    this.session = client.session(sessionId);
  }

  /**
   * Starts a subagent in the background. Returns its id as soon as it runs; rejects if it is refused, or
   * stopped before it begins.
   */
  async startSubagent(name: string, body: Body): Promise<string> {
    const { staleAfterMs, stop } = this.options;
    return await new Promise((resolve, reject) => {
      const ended = this.session.host({ name, silence: { staleAfterMs }, stop }, async (work) => {
        resolve(work.task.id);
        return await body(work);
      });
      // After the start this has no effect: the end of the body, or its failure, is in its task.
      ended.then(({ state }) => {
        reject(new Error(`${name} has not begun: its task is ${TaskState[state]}`));
      }, reject);
    });
  }

  /**
   * Ends the turn: returns when no task of the session is live. A subagent that is silent, already or from
   * now on, is cancelled. Returns the cancelled ones.
   */
  async endTurn(signal?: AbortSignal): Promise<BackgroundTask[]> {
    const zombies: BackgroundTask[] = [];
    let isLive = false;
    const types = ["stale", "sessionIdle"] as const;
    for await (const item of this.session.watch({ initialState: true, types, signal })) {
      if (item.kind === "initial") {
        isLive = true;
        zombies.push(...(item.task.stale ? [await this.#cancel(item.task)] : []));
      } else if (item.kind === "bookmark") {
        // The first one follows the initial state.
        if (!isLive) {
          break;
        }
      } else if (item.event.type === TaskEventType.SESSION_IDLE) {
        break;
      } else if (item.event.task !== undefined) {
        zombies.push(await this.#cancel(item.event.task));
      }
    }
    return zombies;
  }

  async #cancel(zombie: BackgroundTask): Promise<BackgroundTask> {
    const reason = `silent for ${this.options.staleAfterMs.toString()} ms`;
    const filter = { taskIds: [zombie.id] };
    const [result] = await this.session.cancel({ filter, reason, actor: "host" });
    return result?.task ?? zombie;
  }
}
