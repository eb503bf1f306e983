// The places of a searched text in a line.

/** @import { Run, Style } from "./ansi.js" */

/**
 * The runs of a line, cut where the text is found, in any case.
 * @param {Run[]} runs
 * @param {string} query
 * @returns {{text: string, style: Style, isFound: boolean}[]}
 */
export function highlighted(runs, query) {
  const text = runs.map((run) => run.text).join("");
  const ranges = found(text, query);
  if (!ranges.length) return runs.map((run) => ({ ...run, isFound: false }));
  /** @type {{text: string, style: Style, isFound: boolean}[]} */
  const parts = [];
  let at = 0;
  let next = 0;
  for (const { text: part, style } of runs) {
    const end = at + part.length;
    let from = at;
    while (from < end) {
      while ((ranges[next]?.[1] ?? Infinity) <= from) next += 1;
      const [start, stop] = ranges[next] ?? [Infinity, Infinity];
      const isFound = start <= from;
      const to = Math.min(end, isFound ? stop : start);
      parts.push({ text: part.slice(from - at, to - at), style, isFound });
      from = to;
    }
    at = end;
  }
  return parts;
}

/**
 * @param {string} text
 * @param {string} query
 * @returns {[number, number][]}
 */
function found(text, query) {
  /** @type {[number, number][]} */
  const ranges = [];
  if (!query) return ranges;
  const lower = text.toLowerCase();
  const wanted = query.toLowerCase();
  // The lower case of some characters is longer: then the places differ.
  if (lower.length !== text.length) return ranges;
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, at + wanted.length)) {
    ranges.push([at, at + wanted.length]);
  }
  return ranges;
}
