/** A real daemon for a test, in a directory of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as rest } from "node:timers/promises";

import { HeelerClient } from "../../src/index.js";
import { PACKAGE } from "./package.js";

/** The time limit for a condition: enough for a loaded machine. */
const LIMIT_MS = 30_000;

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

  /** Starts a daemon with these arguments of `serve`, and waits until it serves. */
  static async start(...args: readonly string[]): Promise<Daemon> {
    const daemon = new Daemon(findBinary(), args);
    await daemon.restart();
    return daemon;
  }

  /** Connects a client. */
  async connect(retryForMs?: number): Promise<HeelerClient> {
    return await HeelerClient.connect({ address: this.address, retryForMs });
  }

  /** Starts the next daemon on the same state. */
  async restart(): Promise<void> {
    const own = ["serve", "--state-dir", join(this.dir, "state"), "--listen", this.address];
    // Keeps all output in the directory, which is removed after the test.
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

  /** The TCP address in the log. */
  async tcpAddress(): Promise<string> {
    const line = /listening on (?<address>t\S+)/gu;
    return await until("the daemon logs its address", () => {
      return [...this.#log.matchAll(line)].at(-1)?.groups?.["address"];
    });
  }

  /** The HTTP address in the log. */
  async httpAddress(): Promise<string> {
    const line = /listening on (?<address>http\S+)/gu;
    return await until("the daemon logs its address", () => {
      return [...this.#log.matchAll(line)].at(-1)?.groups?.["address"];
    });
  }

  /** Ends the daemon with a signal and waits for its exit. */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    this.#process?.kill(signal);
    await this.ended();
  }

  /** Waits for the exit. */
  async ended(): Promise<void> {
    if (this.#process?.exitCode === null && this.#process.signalCode === null) {
      await once(this.#process, "exit");
    }
    this.#process = undefined;
  }

  /** Ends all tasks and the daemon, and removes the directory. */
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

/** Waits until a condition gives a value. */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined> | T | undefined,
): Promise<T> {
  const end = performance.now() + LIMIT_MS;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) {
      return answer;
    }
    if (performance.now() > end) {
      throw new Error(`not within ${LIMIT_MS.toString()} ms: ${what}`);
    }
    await rest(10);
  }
}

/** The program of the daemon: `HEELER_BINARY`, else the debug build. */
export function findBinary(): string {
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
