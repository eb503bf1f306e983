/**
 * A process that is a worker. Its first argument says which: `agent` joins the task that it runs in,
 * `host` hosts a task of its own with the given lease. It prints what it is told, one JSON value a line.
 */
import { HeelerClient, TaskState, WorkCancelMode } from "../../src/index.js";

const print = (line: unknown): void => {
  console.log(JSON.stringify(line));
};

async function agent(client: HeelerClient): Promise<void> {
  await using work = await client.current();
  if (work === undefined) {
    print("no task");
    return;
  }
  await work.report({ intent: "waits", percent: 10 });
  await work.progress.toolCall("read", "the mailbox");
  print({ joined: work.task.id });
  work.stopping.addEventListener("abort", () => {
    const { mode, reason } = work.cancelRequest ?? {};
    print({ told: WorkCancelMode[mode ?? 0], reason, at: Date.now() });
  });
  for await (const { text } of work.messages({ signal: work.stopping })) {
    print({ message: text, at: Date.now() });
  }
}

async function host(client: HeelerClient, leaseMs: number): Promise<void> {
  const ended = await client.host({ name: "frozen", leaseMs }, async ({ signal }) => {
    await new Promise((resolve) => {
      signal.addEventListener("abort", resolve);
    });
    return "too late";
  });
  print({ state: TaskState[ended.state], result: ended.result?.text });
}

const [, , kind = "", leaseMs = "0"] = process.argv;
await using client = await HeelerClient.connect();
await (kind === "host" ? host(client, Number(leaseMs)) : agent(client)).catch((error: unknown) => {
  // The stream of messages ends with the reason of its signal.
  print({ thrown: (error as Error).name });
});
