/** The three stories of docs/AGENTS.md, one after the other, on the daemon in HEELER_ADDR or the user's own. */
import { once } from "node:events";
import { setTimeout as rest } from "node:timers/promises";

import { EndReason, HeelerClient, type Work } from "@heeler/client";

import { Fleet } from "./fleet.js";
import { AgentHost } from "./host.js";
import { repeatsItself, supervise } from "./parent.js";

/** A host defers its own idle, finds a zombie and goes on. */
async function zombie(host: AgentHost): Promise<void> {
  await host.startSubagent("reviewer", async (work) => {
    await work.progress.text("two findings");
    return "two findings";
  });
  await host.startSubagent("researcher", async ({ signal }) => {
    // A model that never answers. The final cancel ends the wait.
    await rest(3_600_000, undefined, { signal });
  });
  await host.session.spawn({ shell: "echo passed; sleep 0.5", name: "tests" });
  console.log("turn 1 has work in the background");
  for (const { spec, stop } of await host.endTurn()) {
    console.log(`${spec?.name ?? ""} was cancelled: ${stop?.reason ?? ""}`);
  }
  console.log("turn 1 is over");
  await host.startSubagent("writer", () => "done");
  console.log("turn 2 is over, cancelled:", (await host.endTurn()).length);
}

/** A fleet manager replaces the work of a member. */
async function replace(client: HeelerClient): Promise<void> {
  const fleet = new Fleet(client, "docs");
  const begun = new AbortController();
  const draft = fleet.assign("ada", async ({ stopping }) => {
    begun.abort();
    await once(stopping, "abort");
    return { status: "cancelled", text: "half a draft" };
  });
  await once(begun.signal, "abort");
  const next = await fleet.assign("ada", () => "a shorter draft");
  const { endReason, result } = await draft;
  console.log(`ada: ${EndReason[endReason]} with "${result?.text ?? ""}"`);
  console.log(`ada: ${EndReason[next.endReason]} with "${next.result?.text ?? ""}"`);
}

/** A parent stops a subagent that repeats itself, after its present tool call. */
async function loop(client: HeelerClient, host: AgentHost): Promise<void> {
  const id = await host.startSubagent("editor", async (work: Work) => {
    for (let calls = 0; ; calls += 1) {
      if (work.stopping.aborted) {
        return { status: "cancelled", text: calls < 3 ? "" : "the change is there already" };
      }
      await work.progress.toolCall("edit", "src/main.ts");
      await rest(10, undefined, { signal: work.signal });
      await work.progress.toolResult("edit", "no change");
    }
  });
  const { stop, result } = await supervise(client, id, repeatsItself);
  const { blocks } = await client.inspect(id, { blockCount: 2 });
  console.log(`editor: ${stop?.reason ?? ""}`);
  console.log(`editor: kept "${result?.text ?? ""}"; last: ${blocks.at(-1)?.text ?? ""}`);
}

await using client = await HeelerClient.connectOrStart();
const host = new AgentHost(client, "story", {
  staleAfterMs: 2000,
  stop: { softGraceMs: 200, graceMs: 1000 },
});
await zombie(host);
await replace(client);
await loop(client, host);
