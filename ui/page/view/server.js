// The server that answers, and the connection to it.

import { words } from "../text/task.js";
import { clock, count, duration, time } from "../text/units.js";
import { h, setChildren } from "./dom.js";

/** @import { App } from "./app.js" */

export class ServerView {
  title = "Server";
  #facts = h("dl", { class: "facts" });
  element = h(
    "section",
    { class: "sheet" },
    h("h1", {}, "Server"),
    h("section", { role: "region", "aria-label": "Server" }, this.#facts),
  );

  /** @param {App} app */
  constructor(app) {
    this.app = app;
  }

  /** @param {number} now */
  update(now) {
    const facts = this.#list(now);
    setChildren(this.#facts, JSON.stringify(facts), () =>
      facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
    );
  }

  /**
   * @param {number} now
   * @returns {[string, string][]}
   */
  #list(now) {
    const { server, connection, tasks, isReadOnly } = this.app;
    /** @type {[string, string][]} */
    const facts = [
      ["Connection", [connection.state, connection.detail].filter(Boolean).join(": ")],
    ];
    if (server) {
      const running = duration((now - time(server.startTime)) / 1000);
      const containment = words(server.containment, "CONTAINMENT");
      facts.push(
        ["Version", server.version],
        ["Started", `${clock(server.startTime, now)}, ${running} ago`],
        [
          "Live tasks",
          `${count(tasks.live.size)}; at most ${count(server.maxLiveTasks)} are admitted`,
        ],
        ["Containment", [containment, server.containmentDetail].filter(Boolean).join(": ")],
        ["Epoch", server.epoch],
      );
    }
    facts.push(["Revision", tasks.revision === undefined ? "" : count(tasks.revision)]);
    facts.push([
      "Access",
      isReadOnly ? "read-only: this address refuses calls that change something" : "all calls",
    ]);
    return facts;
  }
}
