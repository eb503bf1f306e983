/** The session in the pictures: an agent's work on a shop, the same each time but for ids, ports and ages. */
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** @typedef {import("../test/browser/support/daemon.js").Daemon} Daemon */

/**
 * The ids of the tests' task, of the development server and of all live tasks.
 * @typedef {{tests: string, server: string, all: string[]}} Demo
 */

const SESSION = "fix the checkout";

/** Stand-ins for programs: each prints what the real one would, and then goes on. */
const PROGRAMS = {
  npm: `
case $* in
ci) echo 'added 212 packages in 3s'; exit ;;
'run lint') echo 'src/cart.ts: 2 problems'; exit 1 ;;
esac
printf '\\033[32m  VITE v7.1.4\\033[0m  ready in 412 ms\\n\\n'
exec node -e 'require("http").createServer().listen(0, "127.0.0.1", function () {
  console.log("  \\x1b[32m➜\\x1b[0m  \\x1b[1mLocal\\x1b[0m: http://127.0.0.1:" + this.address().port + "/");
})'`,
  vitest: `
printf '\\033[1;46m RUN \\033[0m v3.2.4 /shop\\n\\n'
for file in cart price stock tax address payment; do
  printf ' \\033[32m✓\\033[0m src/%s.test.ts \\033[2m(12 tests)\\033[0m\\n' $file
done
sleep 0.1; echo 'warning: the payment provider is a stub' >&2; sleep 0.1
printf ' \\033[31m✗\\033[0m src/checkout.test.ts \\033[2m(8 tests | \\033[0m\\033[31m1 failed\\033[0m\\033[2m)\\033[0m\\n'
printf '   \\033[31m✗ an empty cart cannot be paid\\033[0m\\n'
printf '     \\033[31mAssertionError\\033[0m: expected \\033[31m402\\033[0m to be \\033[32m400\\033[0m\\n\\n'
printf ' \\033[1mTests\\033[0m  \\033[31m1 failed\\033[0m | \\033[32m79 passed\\033[0m\\n'
printf ' Waiting for file changes …\\n'
while :; do work 40000; sleep 0.5; done`,
  cargo: `
for crate in libc serde tokio hyper tonic; do printf '\\033[1;32m   Compiling\\033[0m %s\\n' $crate; done
while :; do work 100000; sleep 0.2; done`,
  reviewer: "echo 'Reading src/checkout.ts'; sleep 1000",
  stripe: "echo 'Ready: listening for webhooks'; sleep 1000",
};

const WORK = "#!/bin/sh\nwork() { i=0; while [ $i -lt $1 ]; do i=$((i+1)); done; }\n";

const PROGRESS = {
  intent: "Reproduce the failure",
  percent: 40,
  counts: { tool_calls: "7" },
  blocks: [
    { kind: "BLOCK_KIND_TEXT", text: "The total is checked before the cart is." },
    { kind: "BLOCK_KIND_TOOL_CALL", name: "run", text: "vitest --watch" },
  ],
};

/**
 * Starts the tasks of the session.
 * @param {Daemon} daemon
 * @returns {Promise<Demo>}
 */
export async function startDemo(daemon) {
  const programs = join(daemon.dir, "bin");
  mkdirSync(programs);
  for (const [name, script] of Object.entries(PROGRAMS)) {
    writeFileSync(join(programs, name), WORK + script);
    chmodSync(join(programs, name), 0o755);
  }
  const environment = { variables: { PATH: `${programs}:${process.env["PATH"]}` } };
  const start = async (/** @type {string} */ command, /** @type {object} */ spec = {}) =>
    (
      await daemon.script(command, {
        environment,
        sessionId: SESSION,
        workingDirectory: "/srv",
        ...spec,
      })
    ).id;

  const stopped = await start("npm run dev");
  const ended = [await start("npm run lint"), await start("npm ci")];
  const why = { reason: "the port is needed", actor: "reviewer", wait: true };
  await daemon.call("Cancel", { filter: { taskIds: [stopped] }, ...why });
  await daemon.call("Wait", { filter: { taskIds: ended } });

  const agent = await start("reviewer --task checkout", {
    kind: "TASK_KIND_AGENT",
    name: "reviewer",
  });
  await daemon.call("ReportProgress", { taskId: agent, update: PROGRESS });
  const child = { parentId: agent };
  const tests = await start("vitest --watch", {
    ...child,
    name: "unit tests",
    labels: { repo: "shop" },
  });
  const server = await start("npm run dev", { ...child, name: "dev server", ready: { port: 0 } });
  const build = await start("cargo build", { queue: "build", name: "build" });
  const next = await start("cargo test", { queue: "build", name: "integration tests" });
  const silent = await start("stripe listen", {
    sessionId: "docs",
    name: "webhooks",
    silence: { staleAfter: "0.5s" },
  });
  return { tests, server, all: [agent, tests, server, build, next, silent] };
}
