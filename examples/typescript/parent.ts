/**
 * A parent agent that looks after a subagent: it reads the subagent's last blocks whenever there is progress
 * and, if they are bad, stops it after its present tool call. What the subagent had by then is kept.
 *
 * PROGRESS events are merged to one a second, so a chatty subagent costs its parent no more than that.
 */
import {
  type BackgroundTask,
  type Block,
  BlockKind,
  type HeelerClient,
  TaskEventType,
} from "@heeler/client";

/** Returns the reason to stop a subagent with these last blocks; undefined: it may go on. */
export type Judge = (blocks: readonly Block[]) => string | undefined;

/** The options of `supervise`. */
export interface SuperviseOptions {
  /** Blocks to look at: 10 by default, at most 64. */
  readonly blockCount?: number | undefined;
  /** Time for the present tool call to finish: a minute by default. */
  readonly softGraceMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Looks after a task to its end, and returns the finished task. */
export async function supervise(
  client: HeelerClient,
  taskId: string,
  judge: Judge,
  options: SuperviseOptions = {},
): Promise<BackgroundTask> {
  const { blockCount, softGraceMs = 60_000, signal } = options;
  const task = client.task(taskId);
  const filter = { taskIds: [taskId] };
  const types = ["progress", "ended"] as const;
  for await (const item of client.watch({ after: 0n, filter, types, signal })) {
    if (item.kind !== "event") {
      continue;
    }
    if (item.event.type === TaskEventType.ENDED) {
      break;
    }
    const { blocks } = await task.inspect({ blockCount, signal });
    const reason = judge(blocks);
    if (reason !== undefined) {
      await task.cancel({ graceful: { softGraceMs }, reason, actor: "parent", signal });
      break;
    }
  }
  return await task.wait({ signal });
}

/** Judges that a subagent is in a loop: its last three tool calls are the same. */
export const repeatsItself: Judge = (blocks) => {
  const calls = blocks.filter(({ kind }) => kind === BlockKind.TOOL_CALL).slice(-3);
  const [first] = calls;
  const isSame = calls.every(({ name, text }) => name === first?.name && text === first.text);
  return calls.length === 3 && isSame
    ? `called ${first?.name ?? ""} three times with the same arguments`
    : undefined;
};
