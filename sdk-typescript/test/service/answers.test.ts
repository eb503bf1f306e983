import assert from "node:assert/strict";
import { test } from "node:test";

import { HeelerError, SurvivedError, TaskState, toDate, toMilliseconds } from "../../src/index.js";
import { collect } from "../support/collect.js";
import { Daemon } from "../support/daemon.js";

interface Json {
  readonly [key: string]: Json & string;
}

function parsed(value: unknown): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}

test("every answer can be written as JSON: protobuf's mapping, with default values", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const task = await client.spawn({ shell: "echo hello; exit 3", timeoutMs: 60_000 });
  const ended = await task.wait();
  const json = parsed(ended);
  assert.equal(json["id"], task.id);
  assert.equal(json["state"], "TASK_STATE_FAILED");
  assert.equal(json["revision"], ended.revision.toString());
  assert.equal(json["outcome"]?.["exitCode"], 3);
  assert.equal(json["spec"]?.["timeout"], "60s");
  const time = new Date(json["startTime"] ?? "").getTime();
  assert(Math.abs(time - (toDate(ended.startTime)?.getTime() ?? 0)) <= 1, "rounding");
  assert.equal(JSON.stringify(ended.startTime), JSON.stringify(json["startTime"]), "nested");
  assert.deepEqual(parsed({ task: ended })["task"], json);

  const page = await client.listPage();
  assert.deepEqual(parsed(page)["tasks"], [], "an empty list is written out");
  assert.equal(parsed(await client.inspect(task.id))["task"]?.["id"], task.id);
  assert.equal(parsed(await task.cancel())["outcome"], "CANCEL_OUTCOME_ALREADY_FINISHED");
  assert.equal(
    parsed(await client.raw.wait({ filter: { taskIds: [task.id] } }))["satisfied"],
    true,
  );
  const events = await collect(task.events());
  assert.deepEqual(parsed(events.at(-1))["type"], "TASK_EVENT_TYPE_ENDED");
  const [chunk] = await collect(task.output());
  assert.equal(parsed(chunk)["data"], Buffer.from("hello\n").toString("base64"));
  assert.deepEqual(parsed(await collect(task.lines())), [
    { offset: "0", stream: "OUTPUT_STREAM_STDOUT", text: "hello" },
  ]);
  assert(!Object.keys(ended).includes("toJSON"), "it is no field");
});

test("every task has its exit code, wherever an answer contains it", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const task = await client.spawn({ shell: "exit 7" });
  assert.equal((await task.wait()).exitCode, 7);
  assert.equal((await client.inspect(task.id)).task?.exitCode, 7);
  assert.equal((await task.cancel()).task?.exitCode, 7);
  assert.equal((await client.wait({ taskIds: [task.id] })).met[0]?.exitCode, 7);
  const [listed] = await collect(client.list({ includeFinished: true }));
  assert.equal(listed?.exitCode, 7);
  assert.equal((await collect(task.events())).at(-1)?.task?.exitCode, 7);
  const running = await client.spawnResponse({ argv: ["sleep", "600"] });
  assert.equal(running.task?.exitCode, undefined);
});

test("times are Dates and durations milliseconds, or undefined", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const before = Date.now();
  const task = await (await client.spawn({ shell: "exit 0", timeoutMs: 1500 })).wait();
  const started = toDate(task.startTime);
  assert(started !== undefined && started.getTime() >= before - 1000);
  assert.equal(toDate(task.stop?.requestTime), undefined);
  assert.equal(toMilliseconds(task.spec?.timeout), 1500);
  assert.equal(toMilliseconds(task.spec?.idleTimeout), undefined);
});

/** C4 */
test("the end of the scope of a task stops its tree", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  let id: string;
  {
    await using task = await client.spawn({ shell: "setsid sleep 600 & sleep 600" });
    id = task.id;
    assert.equal((await task.get()).state, TaskState.RUNNING);
  }
  const { state, stop } = await client.task(id).get();
  assert.equal(state, TaskState.CANCELLED);
  assert.equal(stop?.proof?.result.case, "proven");
  assert(new SurvivedError(await client.task(id).get()) instanceof HeelerError);
});

test("the end of the scope of a client closes its connection", async () => {
  await using daemon = await Daemon.start();
  const client = await daemon.connect();
  await client.listPage();
  await client[Symbol.asyncDispose]();
  await assert.rejects(client.listPage(), { kind: "closed" });
  await client[Symbol.asyncDispose]();
});

/** S2 */
test("a bad value names the option beside the contract's field", async () => {
  await using daemon = await Daemon.start();
  await using client = await daemon.connect();
  const argv = ["true"];
  await assert.rejects(client.spawn({ argv, stop: { graceMs: -1 } }), {
    message: "stop.graceMs (spec.stop.grace) is negative or malformed",
    fields: [
      {
        field: "spec.stop.grace",
        option: "stop.graceMs",
        description: "spec.stop.grace is negative or malformed",
      },
    ],
  });
  const message = async (work: Promise<unknown>): Promise<string> =>
    await work.then(
      () => "not refused",
      (error: unknown) => (error as Error).message,
    );
  assert.match(await message(client.spawn({ argv: [] })), /^argv \(spec\.argv\.args\) is empty/u);
  assert.match(
    await message(client.spawn({ argv, workingDirectory: "x" })),
    /^workingDirectory \(spec\.working_directory\) is not an absolute path/u,
  );
  assert.match(
    await message(client.spawn({ argv, environment: { variables: { "A=": "1" } } })),
    /^environment\.variables\["A="\] \(spec\.environment\.variables\["A="\]\) is not/u,
  );
  assert.match(
    await message(client.cancel({ parentId: "x y" })),
    /^filter\.parentId \(filter\.parent_id\)/u,
  );
  assert.match(await message(client.updateQueue("q", { slots: 0 })), /^slots is not between/u);
  assert.match(await message(client.inspect("")), /^taskId \(task_id\) is required/u);
});
