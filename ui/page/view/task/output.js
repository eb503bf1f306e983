// The output of a task: the lines near the visible part, from the window of loaded lines.

import { OutputSource } from "../../live/output.js";
import { count, size } from "../../text/units.js";
import { h, setAttribute, setText } from "../dom.js";
import { icon } from "../icons.js";
import { Rows } from "../rows.js";
import { Find } from "./find.js";
import { lineElement } from "./line.js";

/** @import { Line } from "../../output/lines.js" */
/** @import { App } from "../app.js" */

/** Rows before an edge of the window at which more is loaded. */
const NEAR = 100;
/** Rows above the place that is jumped to. */
const LEAD = 4;

export class OutputPart {
  #generation = 0;
  #shift = 0;
  /** The offset to show, once it is loaded. @type {number | undefined} */
  #target;
  #lastTop = 0;
  #body = h("div", { class: "rows lines" });
  #log = h(
    "div",
    {
      role: "log",
      "aria-label": "Output",
      "aria-live": "off",
      tabindex: "0",
      class: "output",
      scroll: () => this.#scrolled(),
    },
    this.#body,
  );
  #follow = h(
    "button",
    { type: "button", class: "follow", title: "Follow (f)", click: () => this.toggle() },
    icon("follow"),
    "Follow",
  );
  #info = h("span", { class: "muted output-info" });
  /** @type {HTMLInputElement} */
  #slider = h("input", {
    type: "range",
    min: 0,
    step: 1,
    "aria-label": "Position in the output",
    class: "output-slider",
    input: () => this.show(Number(this.#slider.value)),
  });
  #empty = h("p", { class: "output-empty" });
  /** @type {Rows<Line>} */
  #rows;
  element;

  /**
   * @param {App} app
   * @param {string} taskId
   * @param {() => void} onOutput
   */
  constructor(app, taskId, onOutput) {
    this.source = new OutputSource(app.client, taskId, ({ added, dropped }) => {
      if (dropped === Infinity) this.#generation += 1;
      else this.#shift += added - dropped;
      onOutput();
      app.changed();
    });
    this.find = new Find(app, taskId, {
      onChange: () => app.changed(),
      onPlace: (offset) => this.show(offset),
      from: () => this.#top,
    });
    this.#rows = new Rows(this.#log, this.#body, {
      key: (line) => `${line.offset} ${line.end} ${this.#generation} ${this.find.query}`,
      create: (line) => this.#create(line),
    });
    this.element = h(
      "section",
      { class: "part part-output", role: "region", "aria-label": "Output and search" },
      h(
        "div",
        { class: "toolbar" },
        h("h2", {}, "Output"),
        this.#info,
        this.find.element,
        this.#follow,
      ),
      h("div", { class: "output-frame" }, this.#log, this.#empty),
      this.#slider,
    );
    void this.source.follow();
  }

  resized() {
    this.#rows.resized();
  }

  close() {
    this.source.close();
    this.find.close();
  }

  toggle() {
    if (this.source.isFollowing) this.source.pause();
    else this.#followEnd();
  }

  #followEnd() {
    this.#target = undefined;
    void this.source.follow();
  }

  focusSearch() {
    this.find.field.focus();
    this.find.field.select();
  }

  focusLog() {
    this.#log.focus();
  }

  /**
   * Scrolls the output, and returns whether the key does so.
   * @param {string} key
   */
  key(key) {
    const steps = {
      j: 1,
      ArrowDown: 1,
      k: -1,
      ArrowUp: -1,
      PageDown: this.#rows.page,
      PageUp: -this.#rows.page,
    };
    const step = steps[/** @type {keyof typeof steps} */ (key)];
    if (step) this.#log.scrollTop += step * this.#rows.height;
    else if (key === "g" || key === "Home") this.show(0);
    else if (key === "G" || key === "End") this.#followEnd();
    else if (key === "f") this.toggle();
    else if (key === "n" || key === "N") this.find.step(key === "n" ? 1 : -1);
    else return false;
    return true;
  }

  /**
   * Shows the line at an offset, and loads it if need be.
   * @param {number} offset
   */
  show(offset) {
    this.#target = offset;
    void this.source.jump(offset);
  }

  update() {
    const { window } = this.source;
    const length = window.length;
    const { partial } = window;
    this.#body.style.height = `${length * this.#rows.height}px`;
    this.#place();
    this.#rows.update(length, (index) => window.lines[index] ?? partial ?? undefined);
    this.#load();
    this.#describe();
    this.find.update();
  }

  /** The offset of the first visible line. */
  get #top() {
    const { window, isFollowing } = this.source;
    if (isFollowing) return 0;
    return (
      window.lines[Math.floor(this.#log.scrollTop / this.#rows.height)]?.offset ?? window.start
    );
  }

  /** Scrolls as the change of the lines asks for. */
  #place() {
    const { source } = this;
    const log = this.#log;
    const { height } = this.#rows;
    const target = this.#target;
    if (target !== undefined && !source.isLoading) {
      this.#target = undefined;
      const { window } = source;
      if (window.start <= target && target <= window.end)
        log.scrollTop = (window.indexOf(target) - LEAD) * height;
    } else if (source.isFollowing) {
      log.scrollTop = log.scrollHeight;
    } else if (this.#shift) {
      log.scrollTop += this.#shift * height;
    }
    this.#shift = 0;
    this.#lastTop = log.scrollTop;
  }

  #scrolled() {
    const { source } = this;
    // New lines never scroll up, and a log that becomes higher stays at its end: a person did.
    const below = this.#log.scrollHeight - this.#log.scrollTop - this.#log.clientHeight;
    if (source.isFollowing && this.#log.scrollTop < this.#lastTop - 1 && below > this.#rows.height)
      source.pause();
    this.#lastTop = this.#log.scrollTop;
    this.#changed();
  }

  #changed() {
    this.source.onChange({ added: 0, dropped: 0 });
  }

  /** Loads more at the edge that is near. */
  #load() {
    const { source } = this;
    if (source.isLoading || source.isFollowing || source.failure || this.#target !== undefined)
      return;
    const { window } = source;
    const below = this.#log.scrollHeight - this.#log.scrollTop - this.#log.clientHeight;
    if (this.#log.scrollTop < NEAR * this.#rows.height && window.start > 0) void source.earlier();
    else if (below < NEAR * this.#rows.height && !window.isAtEnd) void source.later();
    else if (below < 2 && window.isAtEnd && !window.isComplete && this.#log.scrollTop > 0)
      void source.follow();
  }

  #describe() {
    const { window, isFollowing, isLoading, failure } = this.source;
    setAttribute(this.#follow, "aria-pressed", isFollowing ? "true" : "false");
    const isWhole = window.start === 0 && window.isAtEnd;
    const lines = isWhole
      ? `${count(window.length)} ${window.length === 1 ? "line" : "lines"}`
      : `from ${count(this.#shownTop())}`;
    setText(this.#info, failure || `${size(window.total)}, ${lines}`);
    this.#slider.hidden = isWhole;
    this.#slider.max = String(window.total);
    if (document.activeElement !== this.#slider)
      this.#slider.value = String(isFollowing ? window.total : this.#shownTop());
    setAttribute(
      this.#slider,
      "aria-valuetext",
      `${size(Number(this.#slider.value))} of ${size(window.total)}`,
    );
    this.#empty.hidden = window.length > 0;
    setText(
      this.#empty,
      isLoading && window.total === 0
        ? "Loading …"
        : window.isComplete
          ? "The task has written no output."
          : "No output yet.",
    );
  }

  #shownTop() {
    const { window } = this.source;
    return (
      window.lines[Math.floor(this.#log.scrollTop / this.#rows.height)]?.offset ?? window.start
    );
  }

  /** @param {Line} line */
  #create(line) {
    const element = lineElement(line, this.find.query);
    const update = () =>
      element.classList.toggle(
        "line-current",
        this.find.place === line.offset && this.find.query !== "",
      );
    return { element, update };
  }
}
