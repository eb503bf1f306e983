/** A daemon over TCP: its token, and TLS with a private authority. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import dns from "node:dns";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import {
  type AddressInfo,
  createConnection,
  createServer,
  type Server,
  type Socket,
} from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import {
  type ConnectOptions,
  CredentialsError,
  HeelerClient,
  NotRunningError,
  RefusedError,
  TaskState,
  UnreachableError,
} from "../../src/index.js";
import { parseAddress } from "../../src/connection/address.js";
import { tokenFor } from "../../src/connection/credentials.js";
import { Daemon, until } from "../support/daemon.js";
import { PACKAGE } from "../support/package.js";

const LOOPBACK = ["--listen", "tcp:127.0.0.1:0"] as const;

/** A wire to a TCP address, by the name `localhost`. */
class Wire implements AsyncDisposable {
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  private constructor(port: number) {
    this.#server = createServer((near) => {
      const far = createConnection({ host: "127.0.0.1", port });
      for (const socket of [near, far]) {
        this.#sockets.add(socket.on("error", () => undefined));
        socket.on("close", () => [near, far].map((end) => end.destroy()));
      }
      near.pipe(far).pipe(near);
    });
  }

  static async to(address: string): Promise<Wire> {
    const wire = new Wire(Number(address.split(":").at(-1)));
    await once(wire.#server.listen(0, "127.0.0.1"), "listening");
    return wire;
  }

  get address(): string {
    return `tcp:localhost:${(this.#server.address() as AddressInfo).port.toString()}`;
  }

  /** Breaks all connections. */
  cut(): void {
    this.#sockets.forEach((socket) => socket.destroy());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.cut();
    await once(this.#server, "close");
  }
}

/** A look-up while there is no server of names. */
function unknownName(_name: string, _options: unknown, done: (error: Error) => void): void {
  const error = Object.assign(new Error("getaddrinfo EAI_AGAIN"), { code: "EAI_AGAIN" });
  setImmediate(done, error);
}

/** N2 */
test("a call with the token is served", async () => {
  await using daemon = await Daemon.start(...LOOPBACK);
  const address = await daemon.tcpAddress();
  const token = readFileSync(daemon.tokenFile, "utf8").trim();
  for (const shown of [{ token }, { tokenFile: daemon.tokenFile }]) {
    using client = await HeelerClient.connect({ address, ...shown });
    const task = await client.spawn({ shell: "exit 3" });
    assert.equal((await task.wait()).exitCode, 3);
    for await (const item of client.watch({ after: 0n })) {
      assert(item);
      break;
    }
  }
});

/** N2 */
test("a wrong token and a missing one are refused with their reason", async () => {
  await using daemon = await Daemon.start(...LOOPBACK);
  const address = await daemon.tcpAddress();
  for (const shown of [{ token: "x".repeat(64) }, {}]) {
    using client = await HeelerClient.connect({ address, ...shown });
    await assert.rejects(client.listPage(), (error) => {
      assert(error instanceof RefusedError);
      assert(error.is("TOKEN_REFUSED"));
      assert.equal(error.code, "UNAUTHENTICATED");
      return true;
    });
    await assert.rejects(client.watch({ after: 0n }).next(), { reason: "TOKEN_REFUSED" });
  }
});

/** N2 */
test("the environment names the token file", async (t) => {
  await using daemon = await Daemon.start(...LOOPBACK);
  const address = await daemon.tcpAddress();
  for (const [name, value] of [
    ["HEELER_TOKEN_FILE", daemon.tokenFile],
    ["HEELER_STATE_DIR", join(daemon.dir, "state")],
  ] as const) {
    t.after(() => Reflect.deleteProperty(process.env, name));
    process.env[name] = value;
    using client = await HeelerClient.connect({ address });
    await client.listPage();
    Reflect.deleteProperty(process.env, name);
  }
});

/** K4 */
test("the token of a task is shown to its own daemon, and to no other machine", async (t) => {
  const set = (name: string, value: string): void => {
    t.after(() => Reflect.deleteProperty(process.env, name));
    process.env[name] = value;
  };
  await using daemon = await Daemon.start(...LOOPBACK);
  const address = await daemon.tcpAddress();
  set("HEELER_TOKEN", "of-a-task");
  // With the rights of the user, a task could get around its own.
  set("HEELER_STATE_DIR", join(daemon.dir, "state"));
  for (const own of [address, "", "unix:/nowhere", "nonsense"]) {
    set("HEELER_ADDR", own);
    using client = await HeelerClient.connect({ address });
    await assert.rejects(client.listPage(), { reason: "TOKEN_REFUSED" });
  }
  const remote = parseAddress("tls:build.example.com:7117");
  assert.equal(tokenFor(remote, {}), undefined);
  set("HEELER_ADDR", "tls:build.example.com:7117");
  assert.equal(tokenFor(remote, {}), "of-a-task");
});

test("an error names bad credentials, and never the token", async () => {
  const refused = async (options: ConnectOptions, message: RegExp): Promise<void> => {
    await assert.rejects(HeelerClient.connect(options), (error) => {
      assert(error instanceof CredentialsError);
      assert.match(error.message, message);
      return true;
    });
  };
  for (const token of ["", "a b", "a\nb", "ä"]) {
    await refused(
      { address: "tcp:127.0.0.1:1", token },
      /^the token is empty or contains invalid/u,
    );
  }
  await refused({ address: "tcp:127.0.0.1:1", tokenFile: "/nowhere/token" }, /\/nowhere\/token/u);
  await refused({ address: "tls:127.0.0.1:1", token: "x", tlsCa: "/nowhere/ca" }, /\/nowhere\/ca/u);
});

/** E2 */
test("a watch, a worker and an input go on after a failure of the network", async (t) => {
  await using daemon = await Daemon.start(...LOOPBACK);
  const { tokenFile } = daemon;
  await using wire = await Wire.to(await daemon.tcpAddress());
  using client = await HeelerClient.connect({ address: wire.address, tokenFile });
  const task = await client.spawn({ argv: ["cat"], input: {} });
  const input = task.input();
  input.write("before\n");
  await task.waitForLine({ regex: "before" });
  const work = await client.register({ name: "worker", leaseMs: 60_000 });
  const watched = client.watch({ after: 0n });
  await watched.next();

  const names = t.mock.method(dns, "lookup", unknownName);
  wire.cut();
  const listed = client.listPage();
  input.end("after");
  await until("each has failed to connect", () => (names.mock.callCount() > 8 ? true : undefined));
  names.mock.restore();

  await listed;
  assert.equal((await task.wait()).state, TaskState.COMPLETED);
  assert.equal((await work.finish("done")).state, TaskState.COMPLETED);
  for await (const item of watched) {
    if (item.kind === "event" && item.event.task?.result?.text === "done") {
      break;
    }
  }
});

test("a port without a listener is a daemon that does not run", async () => {
  for (const address of ["tcp:127.0.0.1:1", "tcp:localhost:1"]) {
    await assert.rejects(HeelerClient.connect({ address, token: "x" }), NotRunningError);
  }
});

/** N2 */
test("a private authority is trusted when it is given", async (t) => {
  if (spawnSync("openssl", ["version"]).error !== undefined) {
    assert.notEqual(
      process.env["CI"],
      "true",
      "openssl is missing, and CI must not skip this test",
    );
    t.skip("openssl is missing");
    return;
  }
  const dir = mkdtempSync(join(tmpdir(), "heeler-ts-"));
  t.after(() => {
    rmSync(dir, { recursive: true });
  });
  execFileSync(join(PACKAGE, "../tests/make-certificates.sh"), [dir]);
  const files = ["--tls-cert", join(dir, "cert.pem"), "--tls-key", join(dir, "key.pem")];
  await using daemon = await Daemon.start(...LOOPBACK, ...files);
  const address = await daemon.tcpAddress();
  assert.match(address, /^tls:127\.0\.0\.1:/u);
  const { tokenFile } = daemon;
  const tlsCa = join(dir, "ca.pem");
  for (const named of [address, address.replace("127.0.0.1", "localhost")]) {
    using client = await HeelerClient.connect({ address: named, tokenFile, tlsCa });
    await client.listPage();
  }
  const empty = join(dir, "empty.pem");
  writeFileSync(empty, "nothing");
  await assert.rejects(
    HeelerClient.connect({ address, tokenFile, tlsCa: empty }),
    CredentialsError,
  );
  // No authority that Node trusts has signed it.
  await assert.rejects(HeelerClient.connect({ address, tokenFile }), (error) => {
    assert(error instanceof UnreachableError);
    assert.match(error.message, /certificate/u);
    assert(!error.isTransient);
    return true;
  });
});
