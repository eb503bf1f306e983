/**
 * A fleet manager: one task for each member. New work for a member replaces its present work, which is asked
 * to stop, keeps its partial result, and is over before the new work begins. The daemon enforces it by an
 * exclusive key, so several managers, also in other processes, agree.
 */
import { type BackgroundTask, type Body, type HeelerClient } from "@heeler/client";

/** A member at work. */
export interface Member {
  readonly name: string;
  readonly taskId: string;
  /** The present activity; empty if it has not said. */
  readonly intent: string;
  readonly percent: number | undefined;
  /** True if it has been silent for too long. */
  readonly isStale: boolean;
}

const STALE_AFTER_MS = 60_000;

export class Fleet {
  constructor(
    private readonly client: HeelerClient,
    private readonly name: string,
  ) {}

  /** Gives a member new work, in the place of its present work. Returns the finished task. */
  async assign(member: string, body: Body): Promise<BackgroundTask> {
    return await this.client.host(
      {
        name: member,
        labels: { fleet: this.name, member },
        exclusive: { key: `fleet/${this.name}/${member}`, mode: "replace" },
        silence: { staleAfterMs: STALE_AFTER_MS },
      },
      body,
    );
  }

  /** The members at work, by name. */
  async members(): Promise<Member[]> {
    const members: Member[] = [];
    const filter = { labels: { fleet: this.name }, states: ["running"] } as const;
    for await (const { id, spec, progress, stale } of this.client.list({ filter })) {
      members.push({
        name: spec?.labels["member"] ?? "",
        taskId: id,
        intent: progress?.intent ?? "",
        percent: progress?.percent,
        isStale: stale,
      });
    }
    return members.sort((one, other) => one.name.localeCompare(other.name));
  }

  /** Sends a message to a member. */
  async tell(member: string, text: string): Promise<void> {
    const found = (await this.members()).find(({ name }) => name === member);
    if (found === undefined) {
      throw new Error(`${member} has no work`);
    }
    await this.client.sendMessage(found.taskId, { text, actor: `fleet ${this.name}` });
  }

  /** Stops all members. Returns their tasks, with what each had by then. */
  async disband(reason: string): Promise<BackgroundTask[]> {
    const results = await this.client.cancel({ labels: { fleet: this.name } }, { reason });
    return results.flatMap(({ task }) => (task === undefined ? [] : [task]));
  }
}
