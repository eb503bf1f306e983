/** A daemon for the tests, in a directory of its own. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as rest } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { HeelerClient } from "@heeler/client";

const HEELER = fileURLToPath(new URL("../../../target/debug/heeler", import.meta.url));

export class Daemon implements AsyncDisposable {
  readonly #dir = mkdtempSync(join(tmpdir(), "heeler-ex-"));
  readonly address = `unix:${join(this.#dir, "s.sock")}`;
  #process: ChildProcess;
  /** A client, which reconnects after a restart. */
  client!: HeelerClient;

  private constructor() {
    this.#process = this.#serve();
  }

  /** Starts a daemon, and connects as soon as it listens. */
  static async start(): Promise<Daemon> {
    const daemon = new Daemon();
    daemon.client = await daemon.#connect();
    return daemon;
  }

  /** Kills the daemon and starts the next one on the same state. */
  async killAndRestart(): Promise<void> {
    const gone = once(this.#process, "exit");
    this.#process.kill("SIGKILL");
    await gone;
    this.#process = this.#serve();
    (await this.#connect()).close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = once(this.#process, "exit");
    await this.client.shutdown({ tasks: "stop", graceMs: 0 });
    this.client.close();
    await gone;
    rmSync(this.#dir, { recursive: true });
  }

  #serve(): ChildProcess {
    const binary = process.env["HEELER_BINARY"] ?? HEELER;
    assert(existsSync(binary), `no daemon at ${binary}: run \`cargo build\`, or set HEELER_BINARY`);
    const args = ["serve", "--state-dir", join(this.#dir, "state"), "--listen", this.address];
    args.push("--memory-output", "0");
    return spawn(binary, args, { stdio: "ignore" });
  }

  async #connect(): Promise<HeelerClient> {
    return await until("the daemon listens", async () => {
      assert.equal(this.#process.exitCode, null, "the daemon ended");
      return await HeelerClient.connect({ address: this.address }).catch(() => undefined);
    });
  }
}

/** Waits until a condition gives a value. */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined> | T | undefined,
): Promise<T> {
  const end = performance.now() + 30_000;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) {
      return answer;
    }
    assert(performance.now() < end, `not within 30 s: ${what}`);
    await rest(5);
  }
}

/** Waits for an abort. */
export async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) {
    await once(signal, "abort");
  }
}
