// The fragment of the address: the view, and the token that it may bring.

/** @typedef {"live" | "finished" | "queues" | "events" | "server" | "task"} View */
/** @typedef {{view: View, id: string}} Route */

/** @type {ReadonlySet<string>} */
const NAMES = new Set(["finished", "queues", "events", "server"]);

/**
 * Reads `#/task/ID`, `#token=TOKEN` or `#/VIEW?token=TOKEN`.
 * @param {string} fragment
 * @returns {{route: Route, token: string}}
 */
export function parse(fragment) {
  const text = fragment.replace(/^#/, "");
  if (!text.startsWith("/")) {
    return { route: { view: "live", id: "" }, token: new URLSearchParams(text).get("token") ?? "" };
  }
  const [path = "", query = ""] = text.split("?", 2);
  const [view = "", id = ""] = path.slice(1).split("/");
  const token = new URLSearchParams(query).get("token") ?? "";
  if (view === "task" && id) return { route: { view, id: decoded(id) }, token };
  const known = NAMES.has(view) ? /** @type {View} */ (view) : "live";
  return { route: { view: known, id: "" }, token };
}

/**
 * The fragment of a view.
 * @param {View} view
 * @param {string} [id]
 */
export function fragment(view, id = "") {
  if (view === "task") return `#/task/${encodeURIComponent(id)}`;
  return view === "live" ? "#/" : `#/${view}`;
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
