import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { test } from "node:test";

import { RefusedError, type Task, type TaskInput, TaskState } from "../../src/index.js";
import { collect } from "../support/collect.js";
import { Daemon, until } from "../support/daemon.js";

/** Writes to a stream, and waits until the task has the bytes. */
async function write(input: TaskInput, text: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    input.write(text, (error) => {
      if (error) {
        reject(error);
      } else {
        resolve();
      }
    });
  });
}

async function outputOf(task: Task): Promise<Buffer> {
  return Buffer.concat((await collect(task.output())).map(({ data }) => data));
}

/** The error of a stream. */
async function failure(input: Writable): Promise<RefusedError> {
  const [error] = (await once(input, "error")) as [unknown];
  assert(error instanceof RefusedError, String(error));
  return error;
}

/** I1 */
test("input is read in order, byte for byte, and its end is end-of-file", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const task = await client.spawn({ argv: ["cat"], input: {} });
  const bytes = randomBytes(1_500_001);
  const pieces = [bytes.subarray(0, 1), bytes.subarray(1, 70_000), bytes.subarray(70_000)];
  const input = task.input();
  await pipeline(Readable.from(pieces), input);
  assert.equal(input.bytesTaken, BigInt(bytes.length));
  const ended = await task.wait();
  assert.deepEqual([ended.state, ended.exitCode], [TaskState.COMPLETED, 0]);
  assert.deepEqual(await outputOf(task), bytes);

  const empty = await client.spawn({ shell: "cat; echo at its end" });
  assert.equal((await outputOf(empty)).toString(), "at its end\n", "without being asked for");
});

/** I1 */
test("texts, many small writes and a web stream arrive as one", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const task = await client.spawn({ argv: ["cat"], input: {} });
  const input = task.input();
  const lines = Array.from({ length: 5000 }, (_, at) => `line ${at.toString()} é\n`);
  for (const line of lines) {
    input.write(line);
  }
  input.end("last\n");
  await once(input, "finish");
  await task.wait();
  assert.equal((await outputOf(task)).toString(), `${lines.join("")}last\n`);

  const other = await client.spawn({ argv: ["cat"], input: {} });
  const web = Writable.toWeb(other.input());
  await new Blob(["from ", "the web"]).stream().pipeTo(web);
  await other.wait();
  assert.equal((await outputOf(other)).toString(), "from the web");
});

/** I2, R1 */
test("no byte is lost or written twice across kills of the daemon", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const task = await client.spawn({ argv: ["sha256sum"], input: {} });
  const hash = createHash("sha256");
  const input = task.input();
  let written = 0;
  let isDone = false;
  const source = async function* (): AsyncGenerator<Buffer, void, undefined> {
    for (; written < 400; written += 1) {
      const piece = randomBytes(10_007);
      hash.update(piece);
      yield piece;
      await new Promise(setImmediate);
    }
    await until("all kills are done", () => isDone || undefined);
  };
  const writing = pipeline(source(), input);
  for (let kill = 1; kill <= 3; kill += 1) {
    await until("more is written", () => written > kill * 80 || undefined);
    await daemon.kill();
    await daemon.restart();
  }
  isDone = true;
  await writing;
  assert.equal(input.bytesTaken, 4_002_800n);
  await task.wait();
  assert.equal((await outputOf(task)).toString(), `${hash.digest("hex")}  -\n`);
});

/** I3 */
test("a task that does not read slows its writer down, and nothing else", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const task = await client.spawn({ argv: ["sleep", "600"], input: {} });
  const abort = new AbortController();
  const input = task.input({ signal: abort.signal });
  const failed = once(input, "error");
  assert.equal(input.write(Buffer.alloc(8 << 20)), false);
  let isDrained = false;
  input.on("drain", () => {
    isDrained = true;
  });
  const full = await until("it has taken what it holds", async () => {
    const { offset } = await client.writeInput(task.id);
    return offset > 100_000n ? offset : undefined;
  });
  assert(full < 1_000_000n, `${full.toString()} bytes`);
  const other = await client.spawn({ argv: ["cat"], input: {} });
  other.input().end("served");
  await other.wait();
  assert.equal(isDrained, false);
  abort.abort(new Error("enough"));
  const [error] = (await failed) as [Error];
  assert.deepEqual([error.name, (error.cause as Error).message], ["AbortError", "enough"]);
  assert.equal((await task.get()).state, TaskState.RUNNING);
});

/** I6 */
test("one stream has the input until another one takes it over", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const task = await client.spawn({ argv: ["cat"], input: {} });
  const first = task.input({ writerId: "first" });
  await write(first, "one ");
  const refused = task.input();
  const refusal = failure(refused);
  refused.write("not this");
  assert.deepEqual(
    [(await refusal).reason, (await refusal).metadata["writer_id"]],
    ["INPUT_HELD", "first"],
  );
  const second = task.input({ takeOver: true });
  await write(second, "two ");
  const told = failure(first);
  first.write("too late");
  assert((await told).is("INPUT_TAKEN_OVER"));
  // The same writer, in another process for example, continues.
  second.destroy();
  const again = task.input({ writerId: second.writerId, offset: second.bytesTaken });
  again.end("three");
  await task.wait();
  assert.equal((await outputOf(task)).toString(), "one two three");
});

/** I6 */
test("a stream has a free input once it is open, so no byte of it is skipped", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const task = await client.spawn({ argv: ["cat"], input: {} });
  const input = task.input();
  await write(input, "");
  // At the offset of the stream, whose bytes the daemon would skip as repeated ones.
  await assert.rejects(client.writeInput(task.id, { data: Buffer.from("theirs") }), {
    reason: "INPUT_HELD",
  });
  input.end("mine");
  await task.wait();
  assert.equal((await outputOf(task)).toString(), "mine");
});

/** I7 */
test("input that cannot be written is refused by its reason", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const without = await client.spawn({ argv: ["sleep", "600"] });
  assert((await failure(without.input())).is("INPUT_MISSING"));
  await assert.rejects(without.resizeTerminal({ columns: 80, rows: 24 }), {
    reason: "TERMINAL_MISSING",
  });
  const finished = await client.spawn({ argv: ["true"], input: {} });
  await finished.wait();
  assert((await failure(finished.input())).is("TASK_FINISHED"));
  assert((await failure(client.task("shell-aaaaaaaaaa").input())).is("TASK_NOT_FOUND"));

  const task = await client.spawn({ argv: ["cat"], input: {} });
  const gap = task.input({ offset: 5n });
  const failed = failure(gap);
  gap.write("too far");
  assert.deepEqual([(await failed).reason, (await failed).metadata["offset"]], ["INPUT_GAP", "0"]);
  const closing = task.input({ takeOver: true });
  closing.end();
  await once(closing, "close");
  await task.wait();
  assert.throws(() => task.input({ giveUpAfterMs: NaN }), /giveUpAfterMs/u);
});

/** I7 */
test("a task that closes its input ends the stream, as a broken pipe does", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const task = await client.spawn({ shell: "exec <&-; echo closed; exec sleep 600", input: {} });
  await task.waitForLine({ regex: "closed" });
  const input = task.input();
  const failed = failure(input);
  input.write(Buffer.alloc(1 << 20));
  const error = await failed;
  assert.deepEqual([error.reason, error.metadata["closed_by"]], ["INPUT_CLOSED", "task"]);
  // There is nothing left to close.
  const ending = task.input({ takeOver: true });
  ending.end();
  await once(ending, "close");
});

/** I5 */
test("a terminal has its size, is resized, and shows its screen", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const script =
    "trap 'stty size' WINCH; stty size; while read -r line; do echo \"got $line\"; done";
  const task = await client.spawn({ shell: script, terminal: { columns: 100, rows: 30 } });
  await task.waitForLine({ regex: "^30 100" });
  await task.resizeTerminal({ columns: 120, rows: 40 });
  const input = task.input();
  await write(input, "hello\n");
  await task.waitForLine({ regex: "^40 120" });
  await task.waitForLine({ regex: "^got hello" });
  const { screen } = await task.inspect({ includeScreen: true });
  assert.deepEqual([screen?.columns, screen?.rows], [120, 40]);
  assert(screen?.lines.includes("got hello"), JSON.stringify(screen?.lines));
  await assert.rejects(task.resizeTerminal({ columns: 0, rows: 65_535 }), /columns|rows/u);
  // Ctrl-C, by the line discipline.
  await write(input, "\x03");
  const ended = await task.wait();
  assert.notEqual(ended.state, TaskState.COMPLETED);
  input.destroy();
});
