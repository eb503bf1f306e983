import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import {
  type FollowItem,
  type HeelerClient,
  OutputGapCause,
  OutputStream,
  TaskEventType,
} from "../../src/index.js";
import { collect } from "../support/collect.js";
import { Daemon, until } from "../support/daemon.js";

let daemon: Daemon;
let client: HeelerClient;

before(async () => {
  daemon = await Daemon.start();
  client = await daemon.connect();
});

after(async () => {
  client.close();
  await daemon[Symbol.asyncDispose]();
});

/** The text of each task, by its id. */
function texts(items: readonly FollowItem[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const item of items) {
    if (item.kind === "output") {
      const text = Buffer.from(item.chunk.data).toString();
      found.set(item.taskId, (found.get(item.taskId) ?? "") + text);
    }
  }
  return found;
}

async function textOf(id: string, options: Parameters<HeelerClient["output"]>[1]): Promise<string> {
  const chunks = await collect(client.output(id, options));
  return Buffer.concat(chunks.map(({ data }) => data)).toString();
}

/** O1, O5, O12, O13 */
test("output is read from the last lines, from a time, filtered, plain and at both ends", async () => {
  const shell = "seq 1 9; printf '\\033[31mred\\033[0m\\n' >&2";
  const { id } = await (await client.spawn({ shell })).wait();
  assert.equal(await textOf(id, { tailLines: 1, view: "plain" }), "red\n");
  assert.equal(await textOf(id, { filter: { stream: "stderr" }, view: "plain" }), "red\n");
  assert.equal(await textOf(id, { filter: { include: "^[37]$", linesAfter: 1 } }), "3\n4\n7\n8\n");
  assert.equal(await textOf(id, { filter: { include: "[0-9]$", exclude: "[2-9]$" } }), "1\n");
  assert.equal(await textOf(id, { since: new Date(Date.now() + 3_600_000) }), "");
  const { startTime } = await client.task(id).get();
  assert.match(await textOf(id, { since: startTime }), /^1\n/u);
  const two = await client.readOutput(id, { maxLines: 2 });
  assert.equal(two.nextOffset, 4n);
  const ends = await client.readOutput(id, { headAndTail: { headLines: 1, tailLines: 1 } });
  const gap = ends.chunks.find(({ content }) => content.case === "gap")?.content.value;
  assert(typeof gap === "object" && "lines" in gap);
  assert.deepEqual([gap.cause, gap.lines], [OutputGapCause.OMITTED, 8n]);
});

/** O15, O11 */
test("one stream follows many tasks, across a kill of the daemon, and later ones too", async () => {
  const wait = (name: string): string => `until [ -e ${name} ]; do sleep 0.01; done`;
  const go = join(daemon.dir, "go");
  const spawn = { sessionId: "many", workingDirectory: daemon.dir };
  const one = await client.spawn({ ...spawn, shell: `echo one; ${wait("go")}; echo more` });
  const items: FollowItem[] = [];
  const filter = { sessionId: "many" };
  const following = (async () => {
    for await (const item of client.followOutput({ filter, until: "finished" })) {
      items.push(item);
    }
  })();
  await until("the first output", () => texts(items).get(one.id));
  const two = await client.spawn({ ...spawn, shell: `echo two; ${wait("go")}` });
  await until("the output of the second", () => texts(items).get(two.id));
  await daemon.kill();
  await daemon.restart();
  writeFileSync(go, "");
  await following;
  assert.deepEqual(Object.fromEntries(texts(items)), {
    [one.id]: "one\nmore\n",
    [two.id]: "two\n",
  });
  const begun = items.flatMap((item) => (item.kind === "task" ? [item.task.id] : []));
  assert.deepEqual(begun, [one.id, two.id], "once each");
  const ended = items.flatMap((item) => (item.kind === "ended" ? [item.task.exitCode] : []));
  assert.deepEqual(ended, [0, 0]);
});

/** O15 */
test("a cursor continues at its offset, and a task that never was is gone", async () => {
  const task = await client.spawn({ shell: "printf 0123456789" });
  await task.wait();
  const cursors = [{ taskId: task.id, offset: 6n }, { taskId: "shell-aaaaaaaaaa" }];
  const filter = { sessionId: "nobody" };
  const items = await collect(client.followOutput({ filter, cursors, until: "finished" }));
  assert.equal(texts(items).get(task.id), "6789");
  const gone = items.flatMap((item) => (item.kind === "gone" ? [item.taskId] : []));
  assert.deepEqual(gone, ["shell-aaaaaaaaaa"]);
});

/** O15 */
test("a follow that is aborted throws the reason, and a bad one names its option", async () => {
  const abort = new AbortController();
  const following = collect(client.followOutput({ signal: abort.signal }));
  const reason = new Error("enough");
  abort.abort(reason);
  await assert.rejects(following, reason);
  const bad = client.followOutput({ outputFilter: { include: "(a" } });
  await assert.rejects(collect(bad), /outputFilter.include \(output_filter.include\)/u);
});

/** O16 */
test("a pattern is given at the spawn or later, and its lines are told", async () => {
  const patterns = [{ name: "errors", regex: "^error", cooldownMs: 0 }];
  const task = await client.spawn({
    shell: "echo error: no; exec sleep 600",
    output: { patterns },
  });
  const updated = await task.update({
    setPatterns: [{ name: "any", regex: "no", stream: "stdout" }],
  });
  assert.deepEqual(
    updated.spec?.output?.patterns.map(({ name }) => name),
    ["errors", "any"],
  );
  const told = new Map<string, string | undefined>();
  const filter = { taskIds: [task.id] };
  for await (const item of client.watch({ after: 0n, filter, types: ["matched"] })) {
    if (item.kind === "event") {
      assert.equal(item.event.type, TaskEventType.MATCHED);
      const { match } = item.event;
      told.set(match?.pattern ?? "", match?.lines[0]?.text);
      if (told.size === 2) {
        break;
      }
    }
  }
  assert.deepEqual([...told.values()], ["error: no", "error: no"]);
  const left = await client.updateTask(task.id, { removePatterns: ["errors"] });
  assert.deepEqual(
    left.matches.map(({ name, count }) => [name, count]),
    [["any", 1n]],
  );
  await assert.rejects(
    task.update({ setPatterns: [{ name: "bad", regex: "(a" }] }),
    /setPatterns\[0\].regex \(set_patterns\[0\].regex\)/u,
  );
});

/** L4, O16 */
test("a wait for a line returns the line, or nothing if the task ends without it", async () => {
  const task = await client.spawn({ shell: "echo up >&2; echo listening on 80; exec sleep 600" });
  const line = await task.waitForLine({ regex: "^listening" });
  assert.deepEqual([line?.text, line?.stream], ["listening on 80", OutputStream.STDOUT]);
  assert.equal(await task.waitForLine({ regex: "never" }, { timeoutMs: 20 }), undefined);
  const short = await client.spawn({ argv: ["true"] });
  assert.equal(await short.waitForLine({ regex: "never" }), undefined);
});

/** E5 */
test("an end has a summary, the same in the event and in inspect", async () => {
  const task = await client.spawn({ shell: "echo it broke >&2; exit 3" });
  await task.wait();
  const { summary } = await task.inspect();
  assert.match(summary, /exit code 3[^]*it broke/u);
  const filter = { taskIds: [task.id] };
  for await (const item of client.watch({ after: 0n, filter, types: ["ended"], summaries: true })) {
    if (item.kind === "event") {
      assert.equal(item.event.summary, summary);
      break;
    }
  }
});
