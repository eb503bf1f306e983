// The line above every view: the views, the connection and the keys.

import { fragment } from "../model/route.js";
import { count } from "../text/units.js";
import { h, setAttribute, setText, svg } from "./dom.js";
import { icon } from "./icons.js";
import { showKeys } from "./keys.js";

/** @import { View } from "../model/route.js" */
/** @import { App } from "./app.js" */

/** @type {readonly {view: View, name: string}[]} */
export const VIEWS = [
  { view: "live", name: "Live" },
  { view: "finished", name: "Finished" },
  { view: "queues", name: "Queues" },
  { view: "events", name: "Events" },
  { view: "server", name: "Server" },
];

const CONNECTION = {
  connecting: "Connecting",
  connected: "Connected",
  reconnecting: "Reconnecting",
  refused: "Refused",
};

export class Header {
  #count = h("span", { class: "nav-count", "aria-hidden": "true" });
  #links = VIEWS.map(({ view, name }) => {
    const link = h("a", { href: fragment(view) }, name);
    if (view === "live") link.append(this.#count);
    return { view, link };
  });
  #state = h("span", { class: "connection-text" });
  #status = h(
    "span",
    { role: "status", "aria-label": "Connection", class: "connection" },
    h("span", { class: "dot", "aria-hidden": "true" }),
    this.#state,
  );
  #readOnly = h("span", { class: "badge", hidden: true }, "Read-only");
  element;

  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.element = h(
      "header",
      { class: "header" },
      h(
        "a",
        { class: "brand", href: "#/", "aria-label": "Heeler" },
        mark(),
        h("span", {}, "Heeler"),
      ),
      h("nav", { "aria-label": "Views" }, ...this.#links.map(({ link }) => link)),
      this.#readOnly,
      this.#status,
      h(
        "button",
        {
          class: "plain",
          type: "button",
          "aria-label": "Keys",
          title: "Keys (?)",
          click: showKeys,
        },
        icon("help"),
      ),
    );
  }

  update() {
    const { connection, route, tasks, isReadOnly } = this.app;
    for (const { view, link } of this.#links) {
      setAttribute(link, "aria-current", route.view === view ? "page" : null);
    }
    setText(this.#count, tasks.isComplete ? count(tasks.live.size) : "");
    setAttribute(this.#status, "data-state", connection.state);
    setText(this.#state, CONNECTION[connection.state]);
    setAttribute(this.#status, "title", connection.detail || null);
    this.#readOnly.hidden = !isReadOnly;
  }
}

/** The sign of Heeler: the ears of a herding dog. */
function mark() {
  return svg(
    "svg",
    { class: "mark", viewBox: "0 0 24 24", "aria-hidden": "true" },
    svg("path", { d: "M4 3l6 4h4l6-4v10a8 8 0 0 1-16 0Z" }),
    svg("path", { class: "mark-face", d: "M9 12v1.500M15 12v1.500M10.500 17h3" }),
  );
}
