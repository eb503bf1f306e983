// The page: its state, the frame around every view, and the view of the address.

import { Client } from "../connect/client.js";
import { Token } from "../connect/token.js";
import { Connection } from "../live/connection.js";
import { InputWriters } from "../live/input.js";
import { Sampler } from "../live/sampler.js";
import { Stops } from "../live/stops.js";
import { watch } from "../live/watch.js";
import { fragment, parse } from "../model/route.js";
import { Tasks } from "../model/tasks.js";
import { Access } from "./access.js";
import { h, takesText } from "./dom.js";
import { EventsView } from "./events.js";
import { Header, VIEWS } from "./header.js";
import { showKeys } from "./keys.js";
import { ListView } from "./list/list.js";
import { Messages } from "./messages.js";
import { QueuesView } from "./queues.js";
import { ServerView } from "./server.js";
import { TaskView } from "./task/page.js";

/** @import { ServerInfo } from "../../types/contract.js" */
/** @import { Route } from "../model/route.js" */
/** @import { Happened } from "../model/tasks.js" */

/**
 * A part of the page that fills it below the header.
 * @typedef {object} View
 * @property {string} title
 * @property {HTMLElement} element
 * @property {(now: number) => void} update In an animation frame after a change
 * @property {(event: KeyboardEvent) => boolean} [key] Returns true if the key is used
 * @property {() => void} [shown]
 * @property {() => void} [resized]
 * @property {(event: Happened) => void} [onEvent]
 * @property {() => void} [onConnected] The server answers, perhaps after a failure
 * @property {() => void} [onReset] The stream has begun anew, and events may be missing
 * @property {() => void} [close]
 * @property {() => void} [rest] The page is hidden for long
 * @property {() => void} [wake] The page is looked at again
 * @property {readonly string[]} [inView] Tasks whose resources are shown
 */

/** The time after which a hidden page gives its streams back. It goes on where it was, so that costs little. */
const HIDDEN = 5_000;

export class App {
  token = new Token();
  client = new Client(() => this.token.text);
  tasks = new Tasks();
  connection = new Connection(() => this.#connectionChanged());
  messages = new Messages();
  inputs = new InputWriters(this.client, () => this.changed());
  stops = new Stops(this.client, this.tasks);
  /** @type {ServerInfo | undefined} */
  server;
  sampler = new Sampler(
    this.client,
    () => [...(this.#view?.inView ?? [])],
    () => this.changed(),
  );
  /** @type {Route} */
  route = { view: "live", id: "" };
  #header = new Header(this);
  #access = new Access((token) => this.#useToken(token));
  #main = h("main", { id: "main", tabindex: "-1" });
  /** Views that are kept while another one is shown. @type {Map<string, View>} */
  #kept = new Map();
  /** @type {View | undefined} */
  #view;
  #isPlanned = false;
  #watching = new AbortController();
  #isResting = false;
  #hidden = 0;
  #starts = 0;

  start() {
    document.body.append(
      this.#header.element,
      this.#access.element,
      this.#main,
      this.messages.element,
    );
    addEventListener("hashchange", () => this.#go());
    addEventListener("keydown", (event) => this.#key(event));
    addEventListener("resize", () => this.#resized());
    document.addEventListener("visibilitychange", () => this.#visibilityChanged());
    setInterval(() => this.changed(), 1_000);
    this.#go();
    // A tab that is opened in the background: its streams would keep those of the tab in front waiting.
    if (document.hidden) this.#rest();
    else this.#watch();
  }

  get isReadOnly() {
    return this.client.isReadOnly;
  }

  /** Shows what has changed, in the next animation frame. */
  changed() {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    requestAnimationFrame(() => {
      this.#isPlanned = false;
      this.#header.update();
      this.#view?.update(Date.now());
    });
  }

  /** @param {string} hash A fragment */
  open(hash) {
    location.hash = hash;
  }

  #go() {
    const { route, token } = parse(location.hash);
    if (token) {
      this.token.set(token);
      history.replaceState(null, "", fragment(route.view, route.id));
      if (this.connection.state === "refused") this.#watch();
    }
    this.route = route;
    const view = this.#viewOf(route);
    if (view !== this.#view) {
      this.#view?.close?.();
      this.#view = view;
      this.#main.replaceChildren(view.element);
      view.shown?.();
      if (this.#isResting) view.rest?.();
    }
    document.title = `${view.title} · Heeler`;
    this.changed();
  }

  /** @param {Route} route @returns {View} */
  #viewOf({ view, id }) {
    if (view === "task") {
      return this.#view instanceof TaskView && this.#view.id === id
        ? this.#view
        : new TaskView(this, id);
    }
    const known = this.#kept.get(view);
    if (known) return known;
    const made = this.#make(view);
    this.#kept.set(view, made);
    return made;
  }

  /** @param {Exclude<Route["view"], "task">} view @returns {View} */
  #make(view) {
    switch (view) {
      case "live":
      case "finished":
        return new ListView(this, view);
      case "queues":
        return new QueuesView(this);
      case "events":
        return new EventsView(this);
      case "server":
        return new ServerView(this);
    }
  }

  /** The view that is shown, and those that are kept. */
  #views() {
    return new Set([...(this.#view ? [this.#view] : []), ...this.#kept.values()]);
  }

  #watch() {
    this.#watching.abort();
    this.#watching = new AbortController();
    this.#isResting = false;
    if (this.connection.state === "refused") this.connection.set("connecting");
    const onEvents = (/** @type {Happened[]} */ events) => this.#happened(events);
    const watched = { client: this.client, tasks: this.tasks, connection: this.connection };
    void watch(
      { ...watched, onConnected: () => void this.#connected(), onEvents },
      this.#watching.signal,
    );
  }

  async #connected() {
    for (const view of this.#views()) view.onConnected?.();
    try {
      this.server = (await this.client.call("List", { pageSize: 1 })).server;
    } catch {
      // The stream shows that the connection broke again.
    }
    this.changed();
  }

  /** @param {Happened[]} events */
  #happened(events) {
    for (const event of events) {
      this.stops.apply(event);
      for (const view of this.#views()) view.onEvent?.(event);
    }
    if (this.#starts !== this.tasks.starts) {
      if (this.#starts) {
        this.stops.reset();
        for (const view of this.#views()) view.onReset?.();
      }
      this.#starts = this.tasks.starts;
    }
    this.sampler.retain(this.tasks.live);
    this.inputs.retain(this.tasks.live);
    this.changed();
  }

  #connectionChanged() {
    const { state, detail, isUnauthenticated } = this.connection;
    this.#access.update(
      state === "refused",
      isUnauthenticated && !this.token.text ? "It has no token." : detail,
    );
    this.#main.hidden = state === "refused";
    this.changed();
  }

  /** @param {string} token */
  #useToken(token) {
    this.token.set(token);
    this.#watch();
  }

  #resized() {
    for (const view of this.#kept.values()) view.resized?.();
    this.#view?.resized?.();
    this.changed();
  }

  /** A browser has few connections for one server: a page that is not looked at gives its own back. */
  #rest() {
    if (this.stops.isWaiting) {
      this.#restLater();
      return;
    }
    this.#isResting = true;
    this.#watching.abort();
    this.#view?.rest?.();
  }

  #restLater() {
    this.#hidden = window.setTimeout(() => this.#rest(), HIDDEN);
  }

  #visibilityChanged() {
    clearTimeout(this.#hidden);
    if (document.hidden) {
      if (!this.#isResting) this.#restLater();
    } else if (this.#isResting) {
      this.#watch();
      this.#view?.wake?.();
    }
    this.changed();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]"))
      return;
    const isTyped = takesText(event.target);
    const isOnControl =
      event.target instanceof Element && event.target.matches("button, a, input[type=range]");
    if (isOnControl && (event.key === "Enter" || event.key === " ")) return;
    const isUsed = this.#view?.key?.(event) === true || (!isTyped && this.#ownKey(event.key));
    if (isUsed) event.preventDefault();
  }

  /** @param {string} key */
  #ownKey(key) {
    const view = VIEWS[Number(key) - 1];
    if (view) this.open(fragment(view.view));
    else if (key === "?") showKeys();
    else return false;
    return true;
  }
}
