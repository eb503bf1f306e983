/** The directories and the environment of a user whose daemon is not running. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { HeelerClient } from "../../src/index.js";
import { findBinary, until } from "./daemon.js";

export class Home implements AsyncDisposable {
  readonly dir = mkdtempSync(join(tmpdir(), "heeler-ts-"));
  readonly binary = findBinary();
  readonly #before = { ...process.env };

  constructor() {
    mkdirSync(join(this.dir, "run"), { mode: 0o700 });
    for (const name of Object.keys(process.env).filter((key) => key.startsWith("HEELER_"))) {
      Reflect.deleteProperty(process.env, name);
    }
    Object.assign(process.env, {
      HOME: this.dir,
      XDG_RUNTIME_DIR: join(this.dir, "run"),
      XDG_STATE_HOME: join(this.dir, "state"),
      HEELER_BINARY: this.binary,
    });
  }

  get socket(): string {
    return join(this.dir, "run/heeler/heeler.sock");
  }

  /** Ends a daemon that was started, restores the environment and removes the directories. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      if (existsSync(this.socket)) {
        using client = await HeelerClient.connect({ address: `unix:${this.socket}` });
        await this.shutdown(client);
      }
    } finally {
      for (const name of Object.keys(process.env)) {
        Reflect.deleteProperty(process.env, name);
      }
      Object.assign(process.env, this.#before);
      rmSync(this.dir, { recursive: true });
    }
  }

  /** Ends the daemon and its tasks. The answer comes when it begins to close: until then it would be found. */
  async shutdown(client: HeelerClient): Promise<void> {
    const pids = this.#daemons();
    await client.shutdown({ tasks: "stop", graceMs: 0 });
    await until("the daemon has exited", () => !pids.some(isAlive) || undefined);
  }

  /** The processes that have a file of this home open, other than this one. */
  #daemons(): string[] {
    const pids = readdirSync("/proc").filter((name) => /^\d+$/u.test(name));
    return pids.filter((pid) => pid !== process.pid.toString() && this.#hasOpen(pid));
  }

  #hasOpen(pid: string): boolean {
    try {
      const files = readdirSync(`/proc/${pid}/fd`);
      return files.some((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith(this.dir));
    } catch {
      // The process has exited, or belongs to another user.
      return false;
    }
  }
}

function isAlive(pid: string): boolean {
  return existsSync(`/proc/${pid}`);
}
