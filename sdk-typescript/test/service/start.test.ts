import assert from "node:assert/strict";
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import {
  DaemonStartError,
  HeelerClient,
  NotInstalledError,
  NotRunningError,
  TaskState,
} from "../../src/index.js";
import { Daemon } from "../support/daemon.js";
import { Home } from "../support/home.js";

/** U5 */
test("a daemon is started once, also by several clients, and outlives them", async () => {
  await using home = new Home();
  const connecting = Array.from({ length: 3 }, async () => await HeelerClient.connectOrStart());
  const [first, ...others] = await Promise.all(connecting);
  assert(first !== undefined);
  assert.equal(first.address, `unix:${home.socket}`);
  const started = (await first.listPage()).server?.startTime;
  const task = await first.spawn({ argv: ["sleep", "600"] });
  for (const client of [first, ...others]) {
    assert.deepEqual((await client.listPage()).server?.startTime, started);
    client.close();
  }
  await using next = await HeelerClient.connectOrStart();
  assert.equal((await next.task(task.id).get()).state, TaskState.RUNNING);
});

/** U5 */
test("the program is the given one, else that of HEELER_BINARY, else that on the PATH", async () => {
  await using home = new Home();
  process.env["HEELER_BINARY"] = "/no/such/heeler";
  {
    await using client = await HeelerClient.connectOrStart({ program: home.binary });
    await home.shutdown(client);
  }
  mkdirSync(join(home.dir, "bin"));
  symlinkSync(home.binary, join(home.dir, "bin/heeler"));
  delete process.env["HEELER_BINARY"];
  process.env["PATH"] = `${join(home.dir, "bin")}:${process.env["PATH"] ?? ""}`;
  await using client = await HeelerClient.connectOrStart();
  await client.listPage();
});

/** U5 */
test("a missing program is named, with the way to install it", async () => {
  await using home = new Home();
  process.env["HEELER_BINARY"] = "/no/such/heeler";
  const missing = await HeelerClient.connectOrStart().catch((error: unknown) => error);
  assert(missing instanceof NotInstalledError && missing instanceof DaemonStartError);
  assert.equal(missing.program, "/no/such/heeler");
  assert.match(missing.message, /cannot execute `\/no\/such\/heeler` \(from HEELER_BINARY\)/u);
  assert.match(missing.message, /`cargo install --path cli`.*, or set HEELER_BINARY/u);

  delete process.env["HEELER_BINARY"];
  process.env["PATH"] = home.dir;
  await assert.rejects(HeelerClient.connectOrStart(), /`heeler` \(from PATH\)/u);
  const directory = HeelerClient.connectOrStart({ program: home.dir });
  await assert.rejects(directory, { kind: "notInstalled", message: /EACCES/u });
});

/** U5 */
test("a start that fails says why", async () => {
  await using home = new Home();
  writeFileSync(join(home.dir, "state"), "in the way of the state directory");
  const failed = await HeelerClient.connectOrStart().catch((error: unknown) => error);
  assert(failed instanceof DaemonStartError);
  assert(failed.message.includes(join(home.dir, "state")), failed.message);
});

/** U5 */
test("with an address no daemon is started", async () => {
  await using home = new Home();
  await using daemon = await Daemon.start();
  const address = `unix:${join(home.dir, "s.sock")}`;
  await assert.rejects(HeelerClient.connectOrStart({ address }), NotRunningError);
  process.env["HEELER_ADDR"] = address;
  await assert.rejects(HeelerClient.connectOrStart(), NotRunningError);
  await using client = await HeelerClient.connectOrStart({ address: daemon.address });
  await client.listPage();
  assert(!existsSync(join(home.dir, "run/heeler")));
});
