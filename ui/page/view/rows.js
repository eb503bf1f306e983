// Rows of one height, of which only those near the visible part are elements.

import { setAttribute } from "./dom.js";

/** Rows beside the visible ones. */
const MARGIN = 8;

/**
 * @template T
 * @typedef {object} RowView
 * @property {HTMLElement} element
 * @property {(row: T, index: number) => void} update
 * @property {(row: T) => boolean} [canShow] Returns whether it can show another row than the one that it was made for
 */

/** @template T */
export class Rows {
  /** @type {Map<string, RowView<T>>} */
  #views = new Map();
  /** The indexes of the rows that are elements. */
  first = 0;
  last = 0;
  #height = 0;

  /**
   * @param {HTMLElement} scroller
   * @param {HTMLElement} body Inside of the scroller, below other content of it
   * @param {{key: (row: T, index: number) => string, create: (row: T) => RowView<T>}} kind
   */
  constructor(scroller, body, kind) {
    this.scroller = scroller;
    this.body = body;
    this.kind = kind;
  }

  /** The height of a row, which the style sheet sets. */
  get height() {
    if (!this.#height) {
      const height = Number.parseFloat(
        getComputedStyle(this.body).getPropertyValue("--row-height"),
      );
      this.#height = height || 24;
    }
    return this.#height;
  }

  /** The number of rows that are visible at a time. */
  get page() {
    return Math.max(
      1,
      Math.floor((this.scroller.clientHeight - this.body.offsetTop) / this.height),
    );
  }

  /** Reads the height again: the width of the window is another one. */
  resized() {
    this.#height = 0;
  }

  /** @param {number} count @param {(index: number) => T | undefined} at */
  update(count, at) {
    const { scroller, body, height } = this;
    const size = `${count * height}px`;
    if (body.style.height !== size) body.style.height = size;
    const top = scroller.scrollTop - body.offsetTop;
    this.first = Math.max(0, Math.min(count, Math.floor(top / height)) - MARGIN);
    this.last = Math.min(count, Math.ceil((top + scroller.clientHeight) / height) + MARGIN);
    /** @type {{key: string, row: T, index: number}[]} */
    const wanted = [];
    for (let index = this.first; index < this.last; index += 1) {
      const row = at(index);
      if (row !== undefined) wanted.push({ key: this.kind.key(row, index), row, index });
    }
    const free = this.#release(new Set(wanted.map(({ key }) => key)));
    const shown = wanted.map(({ key, row, index }) => {
      const view = this.#views.get(key) ?? this.#reused(free, row) ?? this.kind.create(row);
      this.#views.set(key, view);
      return { view, row, index };
    });
    for (const view of free) view.element.remove();
    this.#place(shown);
  }

  /**
   * Takes the views of other rows away, and returns them.
   * @param {Set<string>} wanted
   */
  #release(wanted) {
    /** @type {RowView<T>[]} */
    const free = [];
    for (const [key, view] of this.#views) {
      if (wanted.has(key)) continue;
      this.#views.delete(key);
      free.push(view);
    }
    return free;
  }

  /**
   * Takes a view that can show this row from those that are free.
   * @param {RowView<T>[]} free
   * @param {T} row
   */
  #reused(free, row) {
    const at = free.findIndex((view) => view.canShow?.(row));
    return at < 0 ? undefined : free.splice(at, 1)[0];
  }

  /** @param {{view: RowView<T>, row: T, index: number}[]} shown */
  #place(shown) {
    /** @type {Element | null} */
    let next = this.body.firstElementChild;
    for (const { view, row, index } of shown) {
      view.update(row, index);
      const offset = `translateY(${index * this.height}px)`;
      if (view.element.style.transform !== offset) view.element.style.transform = offset;
      if (view.element === next) next = next.nextElementSibling;
      else this.body.insertBefore(view.element, next);
    }
  }

  /** Scrolls so that a row is visible. @param {number} index */
  reveal(index) {
    const { scroller, body, height } = this;
    const top = body.offsetTop + index * height;
    const sticky = body.offsetTop;
    if (top - sticky < scroller.scrollTop) scroller.scrollTop = top - sticky;
    else if (top + height > scroller.scrollTop + scroller.clientHeight) {
      scroller.scrollTop = top + height - scroller.clientHeight;
    }
  }

  /** @param {number} count */
  mark(count) {
    setAttribute(this.scroller, "aria-rowcount", count);
  }
}
