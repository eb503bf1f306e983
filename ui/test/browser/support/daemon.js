/** A real daemon with an HTTP address, in a directory of its own. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { frames } from "./frames.js";
import { until } from "./until.js";

const execute = promisify(execFile);

/** The root of the repository. */
export const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));

/**
 * The parts of a task that the tests use.
 * @typedef {object} Task
 * @property {string} id
 * @property {string} state
 * @property {string} revision
 * @property {string} outputBytes
 * @property {{pid: number}} [leader]
 * @property {{proof?: {empty?: boolean}, reason: string}} [stop]
 */

/**
 * An event of the journal.
 * @typedef {{revision: string, type: string, task?: Task}} Event
 */

export class Daemon {
  #dir = mkdtempSync(join(tmpdir(), "heeler-page-"));
  #address = `unix:${join(this.#dir, "s.sock")}`;
  #log = "";
  /** @type {import("node:child_process").ChildProcess | undefined} */
  #process;
  /** The listening address; after the first start with its port. */
  #http = "127.0.0.1:0";

  /** @param {...string} args Further arguments of `serve` */
  constructor(...args) {
    this.args = args;
  }

  /** The address of the Unix socket. */
  get address() {
    return this.#address;
  }

  /** The directory of the daemon, removed at the end. */
  get dir() {
    return this.#dir;
  }

  /** `http://127.0.0.1:PORT`. */
  get origin() {
    return `http://${this.#http}`;
  }

  /** The token of the user. */
  get token() {
    return readFileSync(join(this.#dir, "state/token"), "utf8").trim();
  }

  /** Starts a daemon, from the second one on with the same state and address, and waits until it serves. */
  async start() {
    this.#log = "";
    const args = ["serve", "--state-dir", join(this.#dir, "state"), "--listen", this.#address];
    args.push("--http", this.#http, "--memory-output", "0", ...this.args);
    const daemon = spawn(findBinary(), args, {
      env: this.environment(),
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#process = daemon;
    daemon.stderr.setEncoding("utf8").on("data", (text) => (this.#log += text));
    const address = await until("the daemon logs its address", () => {
      if (daemon.exitCode !== null) throw new Error(`the daemon ended:\n${this.#log}`);
      return /listening on http:\/\/(\S+)/.exec(this.#log)?.[1];
    });
    this.#http = address;
    await this.call("List", {});
  }

  /** The environment of the daemon, without settings and folders of the user. */
  environment() {
    const entries = Object.entries(process.env).filter(([name]) => !/^(HEELER|XDG)_/.test(name));
    const run = join(this.#dir, "run");
    mkdirSync(run, { recursive: true, mode: 0o700 });
    const own = { XDG_RUNTIME_DIR: run, XDG_STATE_HOME: this.#dir, XDG_CONFIG_HOME: this.#dir };
    return { ...Object.fromEntries(entries), ...own };
  }

  /**
   * Makes a call; a refusal is an error with its message.
   * @param {string} method
   * @param {object} request
   * @returns {Promise<any>}
   */
  async call(method, request) {
    const response = await this.#post(method, "application/json", JSON.stringify(request));
    const answer = await response.json();
    if (!response.ok) throw new Error(`${method}: ${answer.message}`);
    return answer;
  }

  /**
   * Runs the command on the socket, which also serves what the HTTP address refuses. Returns its output.
   * @param {...string} args
   */
  async command(...args) {
    const env = { ...this.environment(), HEELER_ADDR: this.#address };
    const { stdout } = await execute(findBinary(), args, { env });
    return stdout.trim();
  }

  /**
   * Spawns a script.
   * @param {string} script
   * @param {object} spec further options
   * @returns {Promise<Task>}
   */
  async script(script, spec = {}) {
    return (await this.call("Spawn", { spec: { shell: { script }, ...spec } })).task;
  }

  /**
   * The present state of a task.
   * @param {string} taskId
   * @returns {Promise<Task>}
   */
  async task(taskId) {
    return (await this.call("Inspect", { taskId })).task;
  }

  /**
   * The ids of all live tasks.
   * @returns {Promise<string[]>}
   */
  async liveIds() {
    const ids = [];
    for (let pageToken = ""; ;) {
      const page = await this.call("List", { pageSize: 1000, pageToken });
      ids.push(...page.tasks.map((/** @type {Task} */ task) => task.id));
      pageToken = page.nextPageToken;
      if (!pageToken) return ids;
    }
  }

  /**
   * Every event up to now.
   * @returns {Promise<Event[]>}
   */
  async events() {
    const { revision } = await this.call("List", { pageSize: 1 });
    const wanted = Number(revision);
    /** @type {Event[]} */
    const events = [];
    if (wanted === 0) return events;
    const request = { afterRevision: "0", bookmarkInterval: "0.1s" };
    for await (const { event, bookmark } of this.stream("WatchEvents", request)) {
      if (event) events.push(event);
      if (Number((event ?? bookmark)?.revision) >= wanted) break;
    }
    return events;
  }

  /**
   * The messages of a server stream.
   * @param {string} method
   * @param {object} request
   * @returns {AsyncGenerator<any>}
   */
  async *stream(method, request) {
    const json = Buffer.from(JSON.stringify(request));
    const head = Buffer.alloc(5);
    head.writeUInt32BE(json.length, 1);
    const body = Buffer.concat([head, json]);
    const response = await this.#post(method, "application/connect+json", body);
    if (!response.ok || !response.body) throw new Error(`${method}: ${response.status}`);
    yield* frames(response.body);
  }

  /**
   * @param {string} method
   * @param {string} type
   * @param {string | Buffer} body
   */
  async #post(method, type, body) {
    return await fetch(`${this.origin}/heeler.v1.BackgroundTasks/${method}`, {
      method: "POST",
      headers: { "content-type": type, authorization: `Bearer ${this.token}` },
      body: typeof body === "string" ? body : new Uint8Array(body),
    });
  }

  /** Kills the daemon, as a crash. */
  async kill() {
    const daemon = this.#process;
    this.#process = undefined;
    if (daemon?.exitCode !== null || daemon.signalCode !== null) return;
    const exit = once(daemon, "exit");
    daemon.kill("SIGKILL");
    await exit;
  }

  /** Ends all tasks and the daemon, and removes the directory. */
  async end() {
    if (this.#process === undefined) await this.start();
    const daemon = this.#process;
    try {
      if (daemon?.exitCode === null && daemon.signalCode === null) {
        const exit = once(daemon, "exit");
        await this.command("shutdown", "--stop-tasks", "--grace", "0s");
        await exit;
      }
    } finally {
      await this.kill();
      rmSync(this.#dir, { recursive: true });
    }
  }
}

/** The program of the daemon: `HEELER_BINARY`, else the debug build. */
export function findBinary() {
  const path = process.env["HEELER_BINARY"] ?? join(ROOT, "target/debug/heeler");
  if (!existsSync(path)) {
    throw new Error(`no daemon at ${path}: run \`cargo build\`, or set HEELER_BINARY`);
  }
  return path;
}
