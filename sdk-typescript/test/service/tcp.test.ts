/** A daemon over TCP: its token, and TLS with a private authority. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import {
  type ConnectOptions,
  CredentialsError,
  HeelerClient,
  NotRunningError,
  RefusedError,
  UnreachableError,
} from "../../src/index.js";
import { Daemon } from "../support/daemon.js";
import { PACKAGE } from "../support/package.js";

const LOOPBACK = ["--listen", "tcp:127.0.0.1:0"] as const;

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
/** K4 */
test("the token of a task is shown at the address in HEELER_ADDR, and nowhere else", async (t) => {
  const set = (name: string, value: string): void => {
    t.after(() => Reflect.deleteProperty(process.env, name));
    process.env[name] = value;
  };
  await using daemon = await Daemon.start(...LOOPBACK);
  const address = await daemon.tcpAddress();
  set("HEELER_TOKEN", "of-a-task");
  set("HEELER_ADDR", address);
  {
    using client = await HeelerClient.connect();
    await assert.rejects(client.listPage(), { reason: "TOKEN_REFUSED" });
  }
  // At any other address, the own daemon's token is used on loopback.
  set("HEELER_STATE_DIR", join(daemon.dir, "state"));
  for (const other of ["", "tcp:127.0.0.1:1", "unix:/nowhere", "nonsense"]) {
    set("HEELER_ADDR", other);
    using client = await HeelerClient.connect({ address });
    await client.listPage();
  }
});

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
