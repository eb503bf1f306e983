import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import {
  ClosedError,
  EndReason,
  RefusedError,
  TaskEventType,
  TaskState,
  WorkerStatus,
  type WorkResponse,
} from "../../src/index.js";
import { collect } from "../support/collect.js";
import { Daemon, until } from "../support/daemon.js";

const PROGRAM = fileURLToPath(new URL("../support/worker.js", import.meta.url));

/** P3, P1, R1 */
test("work goes on across a kill of the daemon, and no report is lost or repeated", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const count = 600;
  let reported = 0;
  let canEnd = false;
  const hosted = client.host({ leaseMs: 20_000 }, async (work) => {
    for (; reported < count; reported += 1) {
      await work.progress.note(`note ${reported.toString()}`);
    }
    await until("the daemon was killed", () => canEnd || undefined);
    return "done";
  });
  await until("some are reported", () => reported > 20 || undefined);
  await daemon.kill();
  await daemon.restart();
  canEnd = true;
  const ended = await hosted;
  assert.equal(ended.state, TaskState.COMPLETED);
  assert.equal(ended.result?.text, "done");
  assert.equal(ended.progress?.blockCount, BigInt(count));
  const { blocks } = await client.inspect(ended.id, { blockCount: 64 });
  const expected = Array.from({ length: 64 }, (_, at) => `note ${(count - 64 + at).toString()}`);
  assert.deepEqual(
    blocks.map(({ text }) => text),
    expected,
  );
});

/** P7, R1 */
test("a result that the daemon is not there to take is delivered to the next one", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  await using work = await client.register({ leaseMs: 20_000 });
  await daemon.kill();
  const finished = work.finish({ status: "failed", text: "while it was away" });
  await daemon.restart();
  const task = await finished;
  assert.deepEqual([task.state, task.result?.text], [TaskState.FAILED, "while it was away"]);
  assert.equal((await work.ended()).id, task.id);
});

/** P8, R1 */
test("messages arrive once and in order, across a kill of the daemon", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  await using work = await client.register({ leaseMs: 20_000 });
  const { task } = work;
  const got: string[] = [];
  const receiving = (async () => {
    for await (const { text, number, sender } of work.messages()) {
      got.push(text);
      assert.equal(number, BigInt(got.length));
      assert.equal(sender?.name, "parent");
    }
  })();
  for (let round = 0; round < 4; round += 1) {
    for (let at = 0; at < 10; at += 1) {
      const text = `message ${(round * 10 + at).toString()}`;
      await task.sendMessage({ text, actor: "parent", messageId: text });
    }
    if (round < 3) {
      await daemon.kill();
      await daemon.restart();
    }
  }
  await until("all have arrived", () => got.length >= 40 || undefined);
  await work.finish("read");
  await receiving;
  assert.deepEqual(
    got,
    Array.from({ length: 40 }, (_, at) => `message ${at.toString()}`),
  );
});

/** P8 */
test("messages that are not taken wait, and a stream that is left takes none along", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const shell = await client.spawn({ argv: ["sleep", "600"] });
  for (const text of ["one", "two", "three", "four"]) {
    await shell.sendMessage({ text });
  }
  {
    await using work = await client.join(shell.id);
    for await (const { text } of work.messages()) {
      assert.equal(text, "one");
      break;
    }
    const waiting = work.messages({ signal: AbortSignal.abort(new Error("not now")) });
    await assert.rejects(waiting.next(), /not now/u);
    assert.equal((await work.messages().next()).value?.text, "two");
  }
  await using again = await client.join(shell.id);
  {
    await using left = again.messages();
    assert.equal((await left.next()).value?.text, "three");
    const next = left.next();
    assert.equal((await next).value?.text, "four");
    const none = left.next();
    await left[Symbol.asyncDispose]();
    await none.catch(() => undefined);
  }
  await shell.sendMessage({ text: "five" });
  assert.equal((await again.messages().next()).value?.text, "five");
  const rest = collect(again.messages());
  await shell.cancel({ force: true });
  assert.deepEqual(await rest, []);
  assert.equal((await again.ended()).state, TaskState.CANCELLED);
});

/** P3 */
test("the lease is kept without the body, which is stale all the same", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const silence = { staleAfterMs: 1500 };
  await using work = await client.register({ leaseMs: 1000, silence });
  const stale = async (): Promise<boolean> => (await work.task.get()).stale;
  await until("it is stale, after more than one lease", async () => (await stale()) || undefined);
  work.heartbeat();
  await until("a heartbeat is activity", async () => !(await stale()) || undefined);
  assert.equal((await work.task.get()).state, TaskState.RUNNING);
  const ended = await work.finish("well");
  assert.equal(ended.state, TaskState.COMPLETED);
});

/** P3 */
test("a process that is frozen past its lease loses its task once, and learns of it", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const host = start(daemon, "host", "1000");
  const id = await until("it is hosted", async () => {
    return (await collect(client.list({ filter: { name: "frozen" } })))[0]?.id;
  });
  host.process.kill("SIGSTOP");
  const lost = await client.task(id).wait();
  assert.deepEqual([lost.state, lost.endReason], [TaskState.LOST, EndReason.WORKER_LOST]);
  host.process.kill("SIGCONT");
  assert.deepEqual(await host.lines, [{ state: "LOST" }]);
  const events = await collect(client.task(id).events());
  assert.equal(events.filter(({ type }) => type === TaskEventType.ENDED).length, 1);
});

/** P3 */
test("a worker that another one replaces is told, and does not come back", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  let id = "";
  const replaced = client.host({}, async (work) => {
    ({ id } = work.task);
    await new Promise((resolve) => {
      work.signal.addEventListener("abort", resolve);
    });
    work.signal.throwIfAborted();
  });
  const told = assert.rejects(replaced, (error) => {
    return error instanceof RefusedError && error.is("WORKER_REPLACED");
  });
  await until("it is hosted", () => id || undefined);
  await assert.rejects(client.join(id), { reason: "WORKER_CONNECTED" });
  await using other = await client.join(id, { takeOver: true });
  await told;
  const ended = await other.finish("by the other one");
  assert.equal(ended.result?.text, "by the other one");
});

/** P6, P2, C18 */
test("a process inside a task joins it, and hears messages and a cancel within 50 ms", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const task = await client.spawn({ argv: [process.execPath, PROGRAM, "agent"], kind: "agent" });
  await task.waitForLine({ regex: "joined" });
  const joined = await until("it has reported", async () => {
    const inspected = await task.inspect();
    return inspected.blocks.length > 0 ? inspected : undefined;
  });
  assert.equal(joined.worker?.connected, true);
  assert.equal(joined.task?.progress?.intent, "waits");
  assert.equal(joined.blocks[0]?.name, "read");

  const sent: number[] = [];
  for (const text of ["first", "second", "third"]) {
    sent.push(Date.now());
    await task.sendMessage({ text });
    await task.waitForLine({ regex: `"message":"${text}"` });
  }
  const cancelled = Date.now();
  const { task: ended } = await task.cancel({ reason: "enough" });
  const lines = (await collect(task.lines())).map(({ text }) => JSON.parse(text) as Line);
  assert.deepEqual(
    lines.map(({ joined: id, message, told, reason }) => id ?? message ?? told ?? reason),
    [task.id, "first", "second", "third", "SOFT", undefined],
  );
  assert.equal(lines[4]?.reason, "enough");
  assert.equal(lines[5]?.thrown, "CancelledError");
  const delays = sent.map((at, index) => (lines[index + 1]?.at ?? Infinity) - at);
  assert(Math.min(...delays) < 50, `messages after ${delays.join(", ")} ms`);
  const delay = (lines[4].at ?? Infinity) - cancelled;
  assert(delay < 50 + MARGIN_MS, `the cancel after ${delay.toString()} ms`);
  assert.equal(ended?.state, TaskState.CANCELLED);
  assert.deepEqual(ended.stop?.signals, [], "it ended by itself in the soft phase");
  assert.equal(ended.exitCode, 0);
});

/** A loaded machine may delay either process, and there is one cancel alone. */
const MARGIN_MS = 500;

interface Line {
  readonly joined?: string;
  readonly message?: string;
  readonly told?: string;
  readonly reason?: string;
  readonly thrown?: string;
  readonly at?: number;
}

test("a process outside of any task has no current work", async () => {
  await using daemon = await Daemon.start();
  const { lines } = start(daemon, "agent");
  assert.deepEqual(await lines, ["no task"]);
});

test("a worker that leaves ends its hosted task, and no other one", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const work = await client.register();
  await work.leave();
  const hosted = await work.task.get();
  assert.equal(hosted.state, TaskState.CANCELLED);
  assert.equal(hosted.result?.status, WorkerStatus.CANCELLED);
  assert.match(hosted.result.text, /left before it delivered/u);
  await work.leave();
  await work.report({ intent: "nothing happens any more" });
  assert.equal((await work.finish("too late")).result?.status, WorkerStatus.CANCELLED);

  const shell = await client.spawn({ argv: ["sleep", "600"] });
  {
    await using joined = await client.join(shell.id);
    await joined.deliver("a result");
    await assert.rejects(joined.deliver("another one"), { reason: "RESULT_DELIVERED" });
  }
  const task = await shell.get();
  assert.deepEqual([task.state, task.result?.text], [TaskState.RUNNING, "a result"]);
  const { worker } = await shell.inspect();
  assert.equal(worker?.connected, false);
});

test("a client that is closed ends the work, and the daemon the task by its lease", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const closing = await daemon.connect();
  let id = "";
  const hosted = closing.host({ leaseMs: 1000 }, async (work) => {
    ({ id } = work.task);
    await new Promise((resolve) => {
      work.signal.addEventListener("abort", resolve);
    });
  });
  await until("it is hosted", () => id || undefined);
  closing.close();
  await assert.rejects(hosted, ClosedError);
  assert.equal((await client.task(id).wait()).state, TaskState.LOST);
});

test("without a daemon a worker gives up when it is told to, or when it is aborted", async () => {
  const daemon = await Daemon.start();
  try {
    await using client = await daemon.connect(0);
    const work = await client.register({ giveUpAfterMs: 300 });
    const abort = new AbortController();
    let isBegun = false;
    const hosted = client.host({ signal: abort.signal }, async ({ signal }) => {
      isBegun = true;
      await new Promise((resolve) => {
        signal.addEventListener("abort", resolve);
      });
    });
    await until("it is hosted", () => isBegun || undefined);
    await daemon.kill();
    await assert.rejects(work.ended(), { kind: "notRunning" });
    abort.abort(new Error("enough"));
    await assert.rejects(hosted, /enough/u);
  } finally {
    await daemon[Symbol.asyncDispose]();
  }
});

/** P1 */
test("bad progress is refused by name and costs neither the stream nor the task", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  await using work = await client.register();
  const bad: [object, RegExp][] = [
    [{ percent: 101 }, /percent must be a whole number from 0 to 100, not 101/u],
    [{ percent: -1 }, /percent/u],
    [{ percent: 0.5 }, /percent/u],
    [{ percent: NaN }, /percent/u],
    [{ percent: "5" }, /percent/u],
    [{ counts: { tokens: -1 } }, /counts.tokens must be a whole number/u],
    [{ counts: { tokens: 2n ** 64n } }, /counts.tokens/u],
    [{ counts: { tokens: 1.5 } }, /counts.tokens/u],
    [{ counts: { ["x".repeat(65)]: 1 } }, /the name of a counter has 65 bytes, more than 64/u],
    [
      { counts: Object.fromEntries(Array.from({ length: 33 }, (_, n) => [n.toString(), n])) },
      /more than 32 counters/u,
    ],
    [{ intent: 5 }, /intent must be a string, not 5/u],
    [{ blocks: [{ text: "fine" }, { text: null }] }, /blocks\[1\].text must be a string/u],
    [{ blocks: [{ kind: "toolcall" }] }, /blocks\[0\].kind must be one of/u],
    [{ blocks: [{ textBytes: -1 }] }, /blocks\[0\].textBytes/u],
    [{ blocks: [{ title: "x" }] }, /there is no option blocks\[0\].title/u],
    [{ progress: 5 }, /there is no option progress/u],
  ];
  for (const [options, message] of bad) {
    await assert.rejects(work.report(options), message);
  }
  const long = "é".repeat(1 << 20);
  await work.report({
    intent: long,
    blocks: [{ text: long, name: long }, { text: "\0\uD800\u{1F600}" }],
  });
  await work.report({
    blocks: Array.from({ length: 2500 }, (_, at) => ({
      text: at.toString() + long.slice(0, 4096),
    })),
  });
  const ended = await work.finish("well");
  assert.equal(ended.progress?.blockCount, 2502n);
  assert.equal(Buffer.byteLength(ended.progress.intent), 1024);
});

/** P1 */
test("a worker that does not wait for its reports loses none and keeps their order", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const ended = await client.host({}, async ({ progress }) => {
    const reports = Array.from({ length: 2000 }, async (_, at) => {
      await progress.note(at.toString());
    });
    await Promise.all(reports);
    return "flooded";
  });
  assert.equal(ended.progress?.blockCount, 2000n);
  const { blocks } = await client.inspect(ended.id, { blockCount: 3 });
  assert.deepEqual(
    blocks.map(({ text }) => text),
    ["1997", "1998", "1999"],
  );
});

/** S2 */
test("a bad registration is refused by its option, and nothing is created", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const refused: [object, string][] = [
    [{ leaseMs: 0 }, "leaseMs"],
    [{ leaseMs: 365 * 24 * 3_600_000 }, "leaseMs"],
    [{ stop: { signal: "SIGINT" } }, "stop.signal"],
    [{ stop: { graceMs: -1 } }, "stop.graceMs"],
    [{ sessionId: "x".repeat(300) }, "sessionId"],
    [{ timeoutMs: 0 }, "timeoutMs"],
    [{ foreground: {} }, "foreground"],
  ];
  for (const [options, option] of refused) {
    await assert.rejects(
      client.host(options, () => "never"),
      (error) => {
        assert(error instanceof RefusedError, String(error));
        assert.deepEqual(
          error.fields.map((field) => field.option),
          [option],
        );
        return true;
      },
    );
  }
  await assert.rejects(client.register({ lease: 1 } as object), /there is no option lease/u);
  await assert.rejects(client.register({ giveUpAfterMs: NaN }), /giveUpAfterMs/u);
  await assert.rejects(client.join("hosted-aaaaaaaaaa"), { reason: "TASK_NOT_FOUND" });
  await assert.rejects(client.join(""), /taskId/u);
  assert.deepEqual(await collect(client.list({ includeFinished: true })), []);
});

/** P7 */
test("joining a finished task shows its end, and takes no report and no result", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const shell = await client.spawn({ shell: "exit 3" });
  await shell.wait();
  await using work = await client.join(shell.id);
  const ended = await work.ended();
  assert.equal(ended.exitCode, 3);
  assert.equal((await work.admitted())?.id, shell.id);
  await work.report({ percent: 100 });
  await work.deliver("too late");
  assert.equal(work.signal.aborted, true);
  assert.deepEqual(await collect(work.messages()), []);
  assert.equal((await shell.get()).result, undefined);
});

test("the plain stream of a worker gives every response", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const got: WorkResponse["item"]["case"][] = [];
  const requests = (async function* () {
    yield { item: { case: "register", value: { spec: {} } } } as const;
    await until("it is joined", () => got.includes("joined") || undefined);
    const value = { status: WorkerStatus.OK, text: "plain" };
    yield { sequence: 1n, item: { case: "result", value } } as const;
    await until("it has ended", () => got.includes("ended") || undefined);
  })();
  for await (const { item } of client.work(requests)) {
    got.push(item.case);
  }
  assert.deepEqual(got, ["joined", "acknowledged", "ended"]);
});

/** A worker in a process of its own, and the lines that it prints until it exits. */
function start(
  daemon: Daemon,
  ...args: readonly string[]
): { process: ChildProcess; lines: Promise<unknown[]> } {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    env: { ...process.env, HEELER_TASK_ID: "", HEELER_ADDR: daemon.address },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exit = once(child, "exit");
  const lines = (async () => {
    const printed = await collect(createInterface({ input: child.stdout }));
    assert.deepEqual(await exit, [0, null]);
    return printed.map((line) => JSON.parse(line) as unknown);
  })();
  return { process: child, lines };
}
