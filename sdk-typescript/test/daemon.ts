/** A real daemon for a test: in a directory of its own, killed and restarted at will. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as rest } from "node:timers/promises";

import { HeelerClient } from "../src/index.js";
import { PACKAGE } from "./place.js";

/** Long enough for a loaded machine: a condition that is met sooner is noticed sooner. */
export const PATIENCE_MS = 30_000;

export class Daemon implements AsyncDisposable {
  readonly dir = mkdtempSync(join(tmpdir(), "heeler-ts-"));
  readonly address = `unix:${join(this.dir, "s.sock")}`;
  readonly tokenFile = join(this.dir, "state/token");
  #process: ChildProcess | undefined;
  #log = "";

  private constructor(
    private readonly binary: string,
    private readonly args: readonly string[],
  ) {}

  /** Starts one, with these arguments of `serve`, and waits until it serves. */
  static async start(...args: readonly string[]): Promise<Daemon> {
    const daemon = new Daemon(findBinary(), args);
    await daemon.restart();
    return daemon;
  }

  /** A client of this daemon. */
  async connect(retryForMs?: number): Promise<HeelerClient> {
    return await HeelerClient.connect({ address: this.address, retryForMs });
  }

  /** Starts it, or the next one on the same state. */
  async restart(): Promise<void> {
    const own = ["serve", "--state-dir", join(this.dir, "state"), "--listen", this.address];
    // All output in the directory that goes with the test.
    own.push("--memory-output", "0");
    const daemon = spawn(this.binary, [...own, ...this.args], {
      env: ownEnvironment(),
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#process = daemon;
    daemon.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#log += text;
    });
    const client = await until("the daemon serves", async () => {
      if (this.#process?.exitCode != null) {
        throw new Error(`the daemon ended with ${this.#process.exitCode.toString()}`);
      }
      return await this.connect().catch(() => undefined);
    });
    await client.listPage();
    client.close();
  }

  /** Where it says that it listens on TCP. */
  async tcpAddress(): Promise<string> {
    const said = /listening on (?<address>t\S+)/gu;
    return await until("the daemon says where it listens", () => {
      return [...this.#log.matchAll(said)].at(-1)?.groups?.["address"];
    });
  }

  /** `kill -9`, or with another signal, and returns when it is gone. */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    this.#process?.kill(signal);
    await this.ended();
  }

  /** Returns when it is gone. */
  async ended(): Promise<void> {
    if (this.#process?.exitCode === null && this.#process.signalCode === null) {
      await once(this.#process, "exit");
    }
    this.#process = undefined;
  }

  /** Ends every task, then the daemon, and leaves nothing behind. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process === undefined) {
      await this.restart();
    }
    const client = await this.connect();
    await client.shutdown({ tasks: "stop", graceMs: 0 });
    client.close();
    await this.ended();
    rmSync(this.dir, { recursive: true });
  }
}

/** Asks until there is an answer. */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined> | T | undefined,
): Promise<T> {
  const end = performance.now() + PATIENCE_MS;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) {
      return answer;
    }
    if (performance.now() > end) {
      throw new Error(`waited in vain: ${what}`);
    }
    await rest(10);
  }
}

function findBinary(): string {
  const path = process.env["HEELER_BINARY"] ?? join(PACKAGE, "../target/debug/heeler");
  if (!existsSync(path)) {
    throw new Error(`no daemon at ${path}: run \`cargo build\`, or set HEELER_BINARY`);
  }
  return path;
}

function ownEnvironment(): NodeJS.ProcessEnv {
  const entries = Object.entries(process.env).filter(([name]) => !name.startsWith("HEELER_"));
  return Object.fromEntries(entries);
}
