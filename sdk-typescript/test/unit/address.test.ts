import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { formatAddress, parseAddress, startCommand } from "../../src/connection/address.js";
import { AddressError } from "../../src/errors.js";
import { defaultSocket, ownUid } from "../../src/connection/paths.js";

function problem(text: string): string {
  try {
    parseAddress(text);
  } catch (error) {
    assert(error instanceof AddressError);
    assert(error.message.length > 20);
    return error.problem;
  }
  return "none";
}

test("an absolute unix path is accepted in both spellings", () => {
  for (const text of ["unix:/run/x.sock", "unix:///run/x.sock"]) {
    assert.equal(formatAddress(parseAddress(text)), "unix:/run/x.sock");
  }
});

test("a text that is not an address is refused with its problem", () => {
  for (const text of ["https://127.0.0.1:1", "/run/x.sock", "http://x", ""]) {
    assert.equal(problem(text), "UNKNOWN_SCHEME");
  }
  assert.equal(problem("unix:run/x.sock"), "RELATIVE_PATH");
  assert.equal(problem("unix:"), "RELATIVE_PATH");
  assert.equal(problem("unix:/a\0b"), "NUL");
});

test("a host is accepted by name and by IP address", () => {
  for (const [text, host] of [
    ["tcp:127.0.0.1:7117", "127.0.0.1"],
    ["tcp:[::1]:7117", "::1"],
    ["tcp:localhost:7117", "localhost"],
    ["tls:build.example.com:7117", "build.example.com"],
    ["tls:[fe80::1]:7117", "fe80::1"],
  ] as const) {
    const address = parseAddress(text);
    assert(address.kind !== "unix");
    assert.deepEqual([address.host, address.port], [host, 7117]);
    assert.equal(formatAddress(address), text);
  }
});

test("an address without a host and port is refused", () => {
  const bad = ["", ":", "h", "h:", ":1", "h:0", "h:65536", "//h:1", "[h]:1", "a b:1", "::1:1"];
  for (const rest of bad) {
    assert.equal(problem(`tcp:${rest}`), "NO_HOST_AND_PORT");
    assert.equal(problem(`tls:${rest}`), "NO_HOST_AND_PORT");
  }
});

/** N2 */
test("an unencrypted address of another machine is refused", () => {
  for (const host of ["10.0.0.1", "example.com", "0.0.0.0", "[fe80::1]"]) {
    assert.equal(problem(`tcp:${host}:7117`), "NOT_LOOPBACK");
  }
});

test("the longest path is accepted and one more byte is not", () => {
  const fits = `unix:/${"x".repeat(106)}`;
  assert.equal(problem(fits), "none");
  assert.equal(problem(`${fits}x`), "PATH_TOO_LONG");
  assert.throws(() => parseAddress(`${fits}x`), /108 bytes/u);
  assert.equal(problem(`unix:/${"é".repeat(54)}`), "PATH_TOO_LONG", "bytes count, not characters");
});

test("the start command names an address that is not the default", () => {
  const command = startCommand(parseAddress("unix:/nowhere/x.sock"));
  assert.equal(command, "heeler serve --listen unix:/nowhere/x.sock");
});

test("the default socket is the one of the daemon", (t) => {
  const root = mkdtempSync(join(tmpdir(), "heeler-ts-"));
  t.after(() => {
    rmSync(root, { recursive: true });
  });
  const fallbacks = { runUser: join(root, "run"), tmp: join(root, "tmp") };
  const socket = (runtimeDir: string): string => defaultSocket(runtimeDir, ownUid(), fallbacks);
  assert.equal(socket("/run/here"), "/run/here/heeler/heeler.sock");

  const fallback = join(fallbacks.tmp, `heeler-${ownUid().toString()}`);
  assert.equal(socket("relative"), join(fallback, "heeler.sock"));
  mkdirSync(fallback, { recursive: true });
  chmodSync(fallback, 0o755);
  assert.throws(() => socket(""), /is not a directory that only user/u);
  chmodSync(fallback, 0o700);
  assert.equal(socket(""), join(fallback, "heeler.sock"));

  rmSync(fallback, { recursive: true });
  symlinkSync(root, fallback);
  assert.throws(() => socket(""), AddressError, "a link is refused");

  const run = join(fallbacks.runUser, ownUid().toString());
  mkdirSync(run, { recursive: true });
  assert.equal(socket(""), join(run, "heeler/heeler.sock"));
});
