import assert from "node:assert/strict";
import test from "node:test";
import { before, decode, encode, fromLineStart } from "../../page/output/bytes.js";
import { LONGEST_LINE, LineReader, linesOf } from "../../page/output/lines.js";
import { MOST_BYTES, MOST_LINES, OutputWindow } from "../../page/output/window.js";
import { gap, piece } from "./made.js";

const texts = (lines) => lines.map((line) => line.text);

test("lines are the same whatever the size of the pieces", () => {
  const text = "first\nsecond ✓ grüße\r\n\nlast";
  const bytes = new TextEncoder().encode(text);
  const whole = linesOf([piece(0, text)]);
  assert.deepEqual(texts(whole), ["first", "second ✓ grüße", "", "last"]);
  for (let size = 1; size < 9; size += 1) {
    const pieces = [];
    for (let at = 0; at < bytes.length; at += size) {
      pieces.push({ offset: at, stream: "out", bytes: bytes.subarray(at, at + size) });
    }
    assert.deepEqual(linesOf(pieces), whole, `pieces of ${size}`);
  }
});

test("a line has its offset and its end in bytes", () => {
  const lines = linesOf([piece(100, "é\nab\n")]);
  assert.deepEqual(
    lines.map(({ offset, end }) => [offset, end]),
    [
      [100, 103],
      [103, 106],
    ],
  );
});

test("a change of stream ends a line, and a gap is a line of its own", () => {
  const lines = linesOf([
    piece(0, "out"),
    piece(3, "err\n", "err"),
    gap(7, 1000),
    piece(1007, "on\n"),
  ]);
  assert.deepEqual(
    lines.map((line) =>
      line.gap ? line.gap.length : `${line.stream} ${line.text} ${line.offset}`,
    ),
    ["out out 0", "err err 3", 1000, "out on 1007"],
  );
});

test("a carriage return writes over its line", () => {
  assert.deepEqual(texts(linesOf([piece(0, "10%\r50%\r100%\ndone\r\n\r\n")])), [
    "100%",
    "done",
    "",
  ]);
});

test("a colour goes on in the next line of its stream", () => {
  const lines = linesOf([
    piece(0, "\x1b[31mred\n"),
    piece(9, "plain\n", "err"),
    piece(15, "still red\n"),
  ]);
  assert.deepEqual(
    lines.map((line) => line.style.fg),
    ["", "", "1"],
  );
});

test("a line without an end is split between characters", () => {
  const text = "é".repeat(LONGEST_LINE);
  const lines = linesOf([piece(0, `x${text}`)]);
  assert.ok(lines.length > 1);
  assert.equal(texts(lines).join(""), `x${text}`);
  assert.ok(lines.every((line) => line.end - line.offset <= LONGEST_LINE));
});

test("a line that has begun is read again with the rest of it", () => {
  const reader = new LineReader();
  assert.deepEqual(reader.push(piece(0, "\x1b[32mbe")), []);
  assert.equal(reader.partial?.text, "\x1b[32mbe");
  assert.equal(reader.partial?.style.fg, "");
  assert.deepEqual(texts(reader.push(piece(7, "gin\nnext"))), ["\x1b[32mbegin"]);
  assert.equal(reader.partial?.style.fg, "2");
});

test("bytes survive base64", () => {
  const bytes = Uint8Array.from({ length: 20_000 }, (_, at) => at % 256);
  assert.deepEqual(decode(encode(bytes)), bytes);
});

test("pieces are cut at an offset and begin with a line", () => {
  const pieces = [piece(0, "ab\ncd\n"), gap(6, 10), piece(16, "ef\n")];
  assert.deepEqual(
    before(pieces, 8).map((one) => ("bytes" in one ? one.bytes.length : one.length)),
    [6, 2],
  );
  assert.equal(fromLineStart(pieces)[0]?.offset, 3);
  assert.equal(fromLineStart([piece(5, "no end")])[0]?.offset, 5);
  assert.equal(fromLineStart([piece(5, "x\n"), piece(7, "y\n")])[0]?.offset, 7);
});

const numbered = (from, count) => {
  const lines = Array.from(
    { length: count },
    (_, at) => `line ${String(from + at).padStart(7, "0")}\n`,
  );
  return piece(from * 13, lines.join(""));
};

test("a window keeps the latest lines of a long output", () => {
  const window = new OutputWindow();
  const parts = Math.ceil((MOST_LINES * 3) / 1000);
  let dropped = 0;
  for (let part = 0; part < parts; part += 1)
    dropped += window.append([numbered(part * 1000, 1000)]);
  assert.equal(window.lines.length, MOST_LINES);
  assert.equal(dropped, parts * 1000 - MOST_LINES);
  assert.equal(window.start, dropped * 13);
  assert.equal(window.end, parts * 13_000);
});

test("a window is bounded in bytes too", () => {
  const window = new OutputWindow();
  const long = `${"x".repeat(LONGEST_LINE - 1)}\n`;
  for (let at = 0; at < 2 * MOST_BYTES; at += long.length) window.append([piece(at, long)]);
  assert.ok(window.end - window.start <= MOST_BYTES);
});

test("a window moves up and down and is the same as the output", () => {
  const window = new OutputWindow();
  window.reset(numbered(5000, 0).offset);
  window.append([numbered(5000, 1000)]);
  // The earlier part begins inside of a line.
  const earlier = numbered(4000, 1000);
  const cut = { ...earlier, offset: earlier.offset + 5, bytes: earlier.bytes.subarray(5) };
  assert.equal(window.prepend([cut]), 999);
  assert.equal(window.start, 4001 * 13);
  window.append([numbered(6000, 10)]);
  assert.deepEqual(
    window.lines.map((line) => line.text),
    Array.from({ length: 2009 }, (_, at) => `line ${String(4001 + at).padStart(7, "0")}`),
  );
  assert.equal(window.indexOf(4001 * 13 + 4), 0);
  assert.equal(window.indexOf(4003 * 13), 2);
});

test("a window that grows at its beginning drops its end, and can read on from there", () => {
  const window = new OutputWindow();
  window.reset(MOST_LINES * 13);
  window.append([numbered(MOST_LINES, MOST_LINES)]);
  // The first line of what is read may be a part of one.
  assert.equal(window.prepend([numbered(MOST_LINES - 100, 100)]), 99);
  assert.equal(window.lines.length, MOST_LINES);
  assert.equal(window.end, (2 * MOST_LINES - 99) * 13);
  assert.equal(window.isAtEnd, false);
  window.append([numbered(2 * MOST_LINES - 99, 99)]);
  assert.equal(window.lines.at(-1)?.text, `line ${String(2 * MOST_LINES - 1).padStart(7, "0")}`);
});

test("output that was read twice is shown once", () => {
  const window = new OutputWindow();
  window.append([piece(0, "a\n")]);
  window.append([piece(0, "a\n"), piece(2, "b\n")]);
  assert.deepEqual(texts(window.lines), ["a", "b"]);
});
