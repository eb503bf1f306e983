import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as rest } from "node:timers/promises";

import { type Body, BlockKind, TaskState } from "@heeler/client";

import { Daemon } from "./daemon.js";
import { AgentHost } from "./host.js";
import { repeatsItself, supervise } from "./parent.js";

/** Calls its tools one after the other, and begins none after it is asked to stop. */
function subagent(tools: Iterable<string>): Body {
  return async (work) => {
    const done: string[] = [];
    for (const tool of tools) {
      if (work.stopping.aborted) {
        return { status: "cancelled", text: `${done.length.toString()} calls` };
      }
      await work.progress.toolCall(tool, "src/main.ts");
      await rest(20, undefined, { signal: work.signal });
      await work.progress.toolResult(tool, "no change");
      done.push(tool);
    }
    return `${done.length.toString()} calls`;
  };
}

function* forever(tool: string): Generator<string, void, undefined> {
  for (;;) {
    yield tool;
  }
}

/** C18, L2, P7 */
test("a subagent in a loop is stopped after its present tool call, and keeps its result", async () => {
  await using daemon = await Daemon.start();
  const { client } = daemon;
  const host = new AgentHost(client, "s", { staleAfterMs: 60_000 });
  const id = await host.startSubagent("editor", subagent(forever("edit")));
  const ended = await supervise(client, id, repeatsItself);
  assert.equal(ended.state, TaskState.CANCELLED);
  assert.equal(ended.stop?.reason, "called edit three times with the same arguments");
  assert.equal(ended.stop.actor?.name, "parent");
  assert.equal(ended.stop.forced, false);
  const { blocks } = await client.inspect(id, { blockCount: 64 });
  assert.equal(blocks.at(-1)?.kind, BlockKind.TOOL_RESULT, "the last call was not cut off");
  const calls = blocks.filter(({ kind }) => kind === BlockKind.TOOL_CALL);
  assert.equal(blocks.length, 2 * calls.length);
  assert.equal(ended.result?.text, `${((ended.progress?.blockCount ?? 0n) / 2n).toString()} calls`);
});

/** P3, P9 */
test("a subagent that does well is left alone, across a kill of the daemon", async () => {
  await using daemon = await Daemon.start();
  const { client } = daemon;
  const host = new AgentHost(client, "s", { staleAfterMs: 60_000 });
  const tools = Array.from({ length: 60 }, (_, at) => (at % 2 === 0 ? "read" : "edit"));
  const id = await host.startSubagent("editor", subagent(tools));
  const supervised = supervise(client, id, repeatsItself);
  await daemon.killAndRestart();
  const ended = await supervised;
  assert.equal(ended.state, TaskState.COMPLETED);
  assert.equal(ended.result?.text, "60 calls");
  assert.equal(ended.progress?.blockCount, 120n);
  assert.equal((await supervise(client, id, repeatsItself)).id, id, "it has ended already");
});
