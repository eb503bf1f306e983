/** The Connect libraries of browsers and of Node.js, against the daemon's HTTP address. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import {
  type Client,
  Code,
  ConnectError,
  createClient,
  type Interceptor,
  type Transport,
} from "@connectrpc/connect";
import { createConnectTransport as createNodeTransport } from "@connectrpc/connect-node";
import { createConnectTransport as createWebTransport } from "@connectrpc/connect-web";

import { BackgroundTasks, TaskEventType, TaskState } from "../../src/gen/heeler/v1/index.js";
import { Daemon } from "../support/daemon.js";

let daemon: Daemon;
let baseUrl: string;

before(async () => {
  daemon = await Daemon.start("--http", "127.0.0.1:0");
  baseUrl = await daemon.httpAddress();
});

after(async () => {
  await daemon[Symbol.asyncDispose]();
});

/** Sends the token with each call. */
function withToken(): Interceptor {
  const token = readFileSync(daemon.tokenFile, "utf8").trim();
  return (next) => async (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return await next(request);
  };
}

/** Spawns a task, sees its events, and is refused a task that does not exist. */
async function use(transport: Transport): Promise<void> {
  const client: Client<typeof BackgroundTasks> = createClient(BackgroundTasks, transport);
  const { task } = await client.spawn({
    spec: { command: { case: "shell", value: { script: "echo hello" } } },
  });
  assert.ok(task !== undefined);
  const seen: TaskEventType[] = [];
  for await (const { item } of client.watchEvents({ afterRevision: 0n })) {
    if (item.case === "event" && item.value.task?.id === task.id) {
      seen.push(item.value.type);
      if (item.value.type === TaskEventType.ENDED) {
        assert.equal(item.value.task.state, TaskState.COMPLETED);
        break;
      }
    }
  }
  assert.ok(seen.includes(TaskEventType.STARTED), seen.join());
  const refused = await client.inspect({ taskId: "shell-none" }).catch((error: unknown) => error);
  assert.ok(refused instanceof ConnectError);
  assert.equal(refused.code, Code.NotFound);
  assert.equal(refused.rawMessage, "there is no task shell-none");
}

/** H1 */
test("connect-web makes calls and reads streams", async () => {
  await use(createWebTransport({ baseUrl, interceptors: [withToken()] }));
});

/** H1 */
test("connect-node makes calls and reads streams over HTTP/1.1 and HTTP/2", async () => {
  for (const httpVersion of ["1.1", "2"] as const) {
    await use(
      createNodeTransport({
        baseUrl,
        httpVersion,
        useBinaryFormat: false,
        interceptors: [withToken()],
      }),
    );
  }
});

/** H2 */
test("a call without the token is refused", async () => {
  const client = createClient(BackgroundTasks, createWebTransport({ baseUrl }));
  const refused = await client.list({}).catch((error: unknown) => error);
  assert.ok(refused instanceof ConnectError);
  assert.equal(refused.code, Code.Unauthenticated);
});
