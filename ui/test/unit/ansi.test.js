import assert from "node:assert/strict";
import test from "node:test";
import {
  BOLD,
  INVERSE,
  PLAIN,
  colours,
  css,
  parse,
  stripped,
  styleAfter,
} from "../../page/output/ansi.js";
import { highlighted } from "../../page/output/highlight.js";

const runs = (text) =>
  parse(text, PLAIN).runs.map(({ text, style }) => [text, style.fg, style.bg, style.flags]);

test("colours of 16, of 256 and of all become styles", () => {
  assert.deepEqual(runs("a\x1b[31mb\x1b[1;92mc\x1b[0md"), [
    ["a", "", "", 0],
    ["b", "1", "", 0],
    ["c", "10", "", BOLD],
    ["d", "", "", 0],
  ]);
  assert.deepEqual(runs("\x1b[38;5;208ma\x1b[48;2;1;2;255mb\x1b[39;49;7mc"), [
    ["a", "208", "", 0],
    ["b", "208", "#0102ff", 0],
    ["c", "", "", INVERSE],
  ]);
});

test("a style lasts beyond the end of its line", () => {
  const style = styleAfter("\x1b[1;34mtitle", PLAIN);
  assert.deepEqual([style.fg, style.flags], ["4", BOLD]);
  assert.equal(styleAfter("plain", style), style);
});

test("every other sequence vanishes, also one that is cut off", () => {
  for (const sequence of [
    "\x1b[2J",
    "\x1b[10;20H",
    "\x1b[?1049h",
    "\x1b[>4;2m",
    "\x1b]0;title\x07",
    "\x1b]8;;http://example.com\x1b\\",
    "\x1b]52;c;c2VjcmV0\x07",
    "\x1bP1$r0m\x1b\\",
    "\x1b_payload\x1b\\",
    "\x1b(B",
    "\x1b7",
    "\x9b31m",
    "\x07\x08\x0e\x0f\x7f\x85",
  ]) {
    assert.equal(stripped(`a${sequence}b`), "ab", JSON.stringify(sequence));
  }
  for (const cut of ["a\x1b[31", "a\x1b", "a\x1b]0;title", "a\x1b[38;5"])
    assert.equal(stripped(cut), "a");
  assert.deepEqual(
    runs("\x1b[999999999mx\x1b[38;9mx\x1b[38;2;999;1mx")
      .map(([text]) => text)
      .join(""),
    "xxx",
  );
});

test("markup is text", () => {
  assert.deepEqual(runs("<img src=x onerror=alert(1)>"), [
    ["<img src=x onerror=alert(1)>", "", "", 0],
  ]);
});

test("a colour of the sheet cannot be anything but a colour", () => {
  for (const colour of ["0", "15", "16", "231", "232", "255", "#0102ff"]) {
    assert.match(css(colour), /^(var\(--ansi-\d+\)|rgb\(\d+ \d+ \d+\)|#[0-9a-f]{6})$/);
  }
  assert.equal(css(""), "");
});

test("text on a background is readable, and keeps a hue of its own", () => {
  const on = (sequence) => colours(parse(`${sequence}x`, PLAIN).runs[0].style);
  assert.deepEqual(on("\x1b[42m"), { fg: "var(--output-text)", bg: "var(--ansi-back-2)" });
  assert.deepEqual(on("\x1b[97;41m"), { fg: "var(--output-text)", bg: "var(--ansi-back-1)" });
  assert.deepEqual(on("\x1b[33;44m"), { fg: "var(--ansi-3)", bg: "var(--ansi-back-4)" });
  assert.deepEqual(on("\x1b[48;5;226m"), { fg: "#000", bg: "rgb(255 255 0)" });
  assert.deepEqual(on("\x1b[48;2;0;0;95m"), { fg: "#fff", bg: "rgb(0 0 95)" });
  assert.deepEqual(on("\x1b[7m"), { fg: "var(--output-back)", bg: "var(--output-text)" });
  assert.deepEqual(on("\x1b[31m"), { fg: "var(--ansi-1)", bg: "" });
});

test("found text is marked across styles, in any case", () => {
  const parts = highlighted(parse("one Tw\x1b[31mo two\x1b[0m three", PLAIN).runs, "TWO");
  assert.deepEqual(
    parts.map(({ text, isFound }) => (isFound ? `[${text}]` : text)),
    ["one ", "[Tw]", "[o]", " ", "[two]", " three"],
  );
  assert.equal(highlighted(parse("İx", PLAIN).runs, "x").length, 1);
});
