import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { type HeelerClient, OutputGapCause, OutputStream } from "../../src/index.js";
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

/** O1, O2 */
test("output is read whole, from an offset, and from the end", async () => {
  const task = await client.spawn({ shell: "head -c 600000 /dev/zero; printf done" });
  const all = await collect(task.output());
  const bytes = Buffer.concat(all.map(({ data }) => data));
  assert.equal(bytes.length, 600_004);
  assert.equal(all.at(-1)?.end, 600_004n);
  const rest = await collect(task.output({ offset: 600_000n }));
  assert.equal(Buffer.concat(rest.map(({ data }) => data)).toString(), "done");
  const [tail] = await collect(task.output({ tailBytes: 2 }));
  assert.equal(tail?.offset, 600_002n);
});

/** O8 */
test("rotated output has a gap", async () => {
  const task = await client.spawn({
    shell: "seq 1 100000",
    output: { maxBytes: 262_144, onLimit: "rotate" },
  });
  await task.wait();
  const chunks = await collect(task.output());
  let end = 0n;
  for (const chunk of chunks) {
    assert.equal(chunk.offset, end);
    ({ end } = chunk);
  }
  assert.equal(end, 588_895n);
  const [missing, ...others] = chunks.filter(({ gap }) => gap !== undefined);
  assert(missing?.gap);
  assert.equal(others.length, 0);
  assert.equal(missing.gap.cause, OutputGapCause.ROTATED);
  assert.equal(missing.offset + missing.gap.length, missing.end);
  assert.match(JSON.stringify(missing), /"cause":"OUTPUT_GAP_CAUSE_ROTATED"/);
  const lines = await collect(task.lines());
  assert.equal(lines[0]?.text, "1");
  assert.equal(lines.at(-1)?.text, "100000");
});

/** O4 */
test("each line has its stream", async () => {
  const task = await client.spawn({ shell: "echo out; echo err >&2" });
  await task.wait();
  const lines = await collect(task.lines());
  const found = new Map(lines.map(({ stream, text }) => [text, stream]));
  assert.equal(found.get("out"), OutputStream.STDOUT);
  assert.equal(found.get("err"), OutputStream.STDERR);
});

/** O3, O11 */
test("output is followed to the end of the task, across a kill of the daemon", async () => {
  const task = await client.spawn({ shell: "echo one; sleep 600 & wait $!; echo two" });
  const received: string[] = [];
  const follower = (async () => {
    for await (const { text } of task.lines()) {
      received.push(text);
    }
  })();
  await until("the first line", () => received[0]);
  await daemon.kill();
  await daemon.restart();
  const { processes } = await task.inspect();
  const sleeper = processes.find(({ command }) => command === "sleep 600");
  assert(sleeper);
  process.kill(sleeper.pid);
  await follower;
  assert.deepEqual(received, ["one", "two"]);
});

/** O3 */
test("without following, only the output so far is read", async () => {
  const task = await client.spawn({ shell: "echo one; exec sleep 600" });
  await until("the first line", async () => {
    const { chunks } = await client.readOutput(task.id, { view: "text", maxBytes: 100 });
    return chunks.find(({ content }) => content.value === "one\n");
  });
  const lines = await collect(task.lines({ follow: false }));
  assert.deepEqual(
    lines.map(({ text }) => text),
    ["one"],
  );
  const { nextOffset } = await client.readOutput(task.id, { offset: 4n, waitMs: 20 });
  assert.equal(nextOffset, 4n);
});

test("an aborted reader throws the signal's reason", async () => {
  const task = await client.spawn({ argv: ["sleep", "600"] });
  const abort = new AbortController();
  const reading = collect(task.output({ signal: abort.signal }));
  const reason = new Error("enough");
  abort.abort(reason);
  await assert.rejects(reading, reason);
});
