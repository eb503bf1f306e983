/** The tasks of a Heeler session as session updates of the Agent Client Protocol, version 2. */
import type { BackgroundWork, SessionUpdate } from "@agentclientprotocol/sdk/experimental/v2";
import { type BackgroundTask, type HeelerClient, TaskKind, TaskState } from "@heeler/client";

/** Streams the updates of a session: display terminals, tool calls of subagents, and the background list. */
export async function* toAcp(
  client: HeelerClient,
  sessionId: string,
  signal?: AbortSignal,
): AsyncGenerator<SessionUpdate, void, undefined> {
  const background = new Map<string, BackgroundWork>();
  const state = (): SessionUpdate => ({
    sessionUpdate: "state_update",
    ...(background.size === 0 ? { state: "idle", stopReason: "end_turn" } : { state: "running" }),
    background: [...background.values()],
  });
  // One stream: what begins, each byte in order, then the end. It resumes after a restart of the daemon.
  for await (const item of client.followOutput({ filter: { sessionId }, signal })) {
    if (item.kind === "task") {
      yield began(item.task);
      background.set(item.task.id, work(item.task));
      yield state();
    } else if (item.kind === "output") {
      const data = Buffer.from(item.chunk.data).toString("base64");
      yield { sessionUpdate: "terminal_output_chunk", terminalId: item.taskId, data };
    } else if (item.kind === "ended") {
      yield ended(item.task);
      background.delete(item.task.id);
      yield state();
    }
  }
}

function work({ id, spec }: BackgroundTask): BackgroundWork {
  return spec?.kind === TaskKind.HOSTED
    ? { type: "tool_call", toolCallId: id }
    : { type: "terminal", terminalId: id };
}

function began({ id, spec }: BackgroundTask): SessionUpdate {
  if (spec?.kind === TaskKind.HOSTED) {
    const title = spec.name;
    return { sessionUpdate: "tool_call_update", toolCallId: id, title, status: "in_progress" };
  }
  const run = spec?.command;
  const command = run?.case === "argv" ? run.value.args.join(" ") : (run?.value?.script ?? "");
  const cwd = spec?.workingDirectory === "" ? null : (spec?.workingDirectory ?? null);
  const capabilities = { cancel: {} };
  return { sessionUpdate: "terminal_update", terminalId: id, command, cwd, capabilities };
}

function ended({ id, spec, state, outcome, exitCode, result }: BackgroundTask): SessionUpdate {
  if (spec?.kind === TaskKind.HOSTED) {
    const status = STATUS[state] ?? "failed";
    const rawOutput = result?.text;
    return { sessionUpdate: "tool_call_update", toolCallId: id, status, rawOutput };
  }
  const how = outcome?.result;
  const signal = how?.case === "signal" ? how.value.name : null;
  const exitStatus = { exitCode: exitCode ?? null, signal };
  return { sessionUpdate: "terminal_update", terminalId: id, exitStatus, capabilities: null };
}

const STATUS: Partial<Record<TaskState, string>> = {
  [TaskState.COMPLETED]: "completed",
  [TaskState.CANCELLED]: "cancelled",
};
