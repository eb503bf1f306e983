// A line of the latest values.

import { setAttribute, svg } from "./dom.js";

const WIDTH = 64;
const HEIGHT = 16;

export class Sparkline {
  #line = svg("polyline", { class: "spark-line" });
  #area = svg("polygon", { class: "spark-area" });
  element = svg(
    "svg",
    {
      class: "spark",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    },
    this.#area,
    this.#line,
  );

  /**
   * @param {readonly number[]} values
   * @param {number} least The value at full height, unless there is a higher one
   * @param {number} slots The number of values in the whole width
   */
  update(values, least, slots = 40) {
    if (values.length < 2) {
      setAttribute(this.#line, "points", "");
      setAttribute(this.#area, "points", "");
      return;
    }
    const highest = Math.max(least, ...values);
    const step = WIDTH / (slots - 1);
    const first = WIDTH - (values.length - 1) * step;
    const points = values.map((value, at) => {
      const y = HEIGHT - 1 - (value / highest) * (HEIGHT - 2);
      return `${(first + at * step).toFixed(1)},${y.toFixed(1)}`;
    });
    setAttribute(this.#line, "points", points.join(" "));
    const base = `${WIDTH},${HEIGHT} ${first.toFixed(1)},${HEIGHT}`;
    setAttribute(this.#area, "points", `${points.join(" ")} ${base}`);
  }
}
