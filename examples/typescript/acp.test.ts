import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import type { BackgroundWork, SessionUpdate } from "@agentclientprotocol/sdk/experimental/v2";

import { toAcp } from "./acp.js";
import { Daemon, until } from "./daemon.js";

/** The id of the terminal or tool call that an update or an entry of the background list names. */
function idOf(of: SessionUpdate | BackgroundWork): string {
  const { terminalId, toolCallId } = of as { terminalId?: string; toolCallId?: string };
  return terminalId ?? toolCallId ?? "";
}

/** Checks the rules of the protocol for the background list. */
function checkOrder(updates: readonly SessionUpdate[]): void {
  const announced = new Set<string>();
  const ended = new Set<string>();
  let listed: string[] = [];
  for (const update of updates) {
    if (update.sessionUpdate === "state_update") {
      const { background } = update as { background: BackgroundWork[] };
      const now = background.map(idOf);
      assert(now.every((id) => announced.has(id) && !ended.has(id)));
      assert(listed.every((id) => now.includes(id) || ended.has(id)));
      assert.equal(update["state"], now.length === 0 ? "idle" : "running");
      listed = now;
    } else {
      const { exitStatus, status } = update as { exitStatus?: object; status?: string };
      const isEnd = exitStatus !== undefined || (status !== undefined && status !== "in_progress");
      (isEnd ? ended : announced).add(idOf(update));
    }
  }
  assert.deepEqual([listed, ended.size], [[], announced.size]);
}

/** O15 */
test("terminals, tool calls and the background list follow from one stream", async () => {
  await using daemon = await Daemon.start();
  const { client } = daemon;
  const session = client.session("s");
  const abort = new AbortController();
  const updates: SessionUpdate[] = [];
  const following = (async () => {
    for await (const update of toAcp(client, "s", abort.signal)) {
      updates.push(update);
    }
  })().catch(() => undefined);
  const of = (id: string): SessionUpdate[] => updates.filter((update) => idOf(update) === id);

  // The stream begins with what is live: once it shows this one, it misses no other.
  const live = await session.spawn({ argv: ["sleep", "600"] });
  await until("the stream has begun", () => of(live.id).length > 0 || undefined);
  await live.cancel();
  const failing = await session.spawn({
    shell: "printf 'a\\303\\251'; exit 3",
    workingDirectory: "/",
  });
  await until("it has ended", () => of(failing.id).length >= 3 || undefined);
  assert.deepEqual(of(failing.id).at(0), {
    sessionUpdate: "terminal_update",
    terminalId: failing.id,
    command: "printf 'a\\303\\251'; exit 3",
    cwd: "/",
    capabilities: { cancel: {} },
  });
  const written = of(failing.id).flatMap((update) => ("data" in update ? [update.data] : []));
  const bytes = Buffer.concat(written.map((data) => Buffer.from(data as string, "base64")));
  assert.equal(bytes.toString(), "aé");
  assert.deepEqual(of(failing.id).at(-1), {
    sessionUpdate: "terminal_update",
    terminalId: failing.id,
    exitStatus: { exitCode: 3, signal: null },
    capabilities: null,
  });

  const server = await session.spawn({ argv: ["sleep", "600"] });
  const reviewer = await session.host({ name: "reviewer" }, () => "two findings");
  await daemon.killAndRestart();
  // The client's request `terminal/cancel`.
  await server.cancel({ force: true });
  await until("it has ended", () => of(server.id).length >= 2 || undefined);
  assert.deepEqual((of(server.id).at(-1) as { exitStatus: object }).exitStatus, {
    exitCode: null,
    signal: "SIGKILL",
  });
  assert.deepEqual(of(reviewer.id), [
    {
      sessionUpdate: "tool_call_update",
      toolCallId: reviewer.id,
      title: "reviewer",
      status: "in_progress",
    },
    {
      sessionUpdate: "tool_call_update",
      toolCallId: reviewer.id,
      status: "completed",
      rawOutput: "two findings",
    },
  ]);
  await until("the list is empty", () => {
    const last = updates.at(-1);
    return last?.sessionUpdate === "state_update" && last["state"] === "idle" ? true : undefined;
  });
  checkOrder(updates);
  abort.abort();
  await following;
});

test("docs/AGENTS.md shows this program", () => {
  const read = (path: string): string =>
    readFileSync(fileURLToPath(new URL(path, import.meta.url)), "utf8");
  const shown = /```ts\n(?<code>\/\*\* The tasks of a Heeler session as[^]*?)```/u.exec(
    read("../../../docs/AGENTS.md"),
  );
  assert.equal(shown?.groups?.["code"], read("../acp.ts"));
});
