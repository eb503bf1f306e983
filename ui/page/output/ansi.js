// Colours of a terminal: the sequences that set them become styles, all others vanish.

/**
 * @typedef {object} Style
 * @property {string} fg A colour: `0` to `255`, `#rrggbb`, or empty
 * @property {string} bg
 * @property {number} flags
 */
/** @typedef {{text: string, style: Style}} Run */

export const BOLD = 1;
export const DIM = 2;
export const ITALIC = 4;
export const UNDERLINE = 8;
export const INVERSE = 16;
export const STRIKE = 32;

/** @type {Style} */
export const PLAIN = { fg: "", bg: "", flags: 0 };

// CSI; OSC, DCS, SOS, PM and APC up to their end or the end of the line; other escapes; other controls.
const CONTROL =
  // eslint-disable-next-line no-control-regex -- they are what is removed
  /(?:\u001b\[|\u009b)([0-?]*)[ -/]*([@-~])?|(?:\u001b[\]PX^_]|[\u0090\u0098\u009d-\u009f])[^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)?|\u001b[ -/]*[0-~]?|[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/**
 * The text of a line in runs of one style, and the style after it.
 * @param {string} text
 * @param {Style} start
 * @returns {{runs: Run[], style: Style}}
 */
export function parse(text, start) {
  /** @type {Run[]} */
  const runs = [];
  let style = start;
  let from = 0;
  /** @type {(end: number) => void} */
  const add = (end) => {
    if (end <= from) return;
    const part = text.slice(from, end);
    const last = runs.at(-1);
    if (last?.style === style) last.text += part;
    else runs.push({ text: part, style });
  };
  for (const match of text.matchAll(CONTROL)) {
    add(match.index);
    from = match.index + match[0].length;
    if (match[2] === "m") style = restyled(style, match[1] ?? "");
  }
  add(text.length);
  return { runs, style };
}

/**
 * The style after a line.
 * @param {string} text
 * @param {Style} start
 */
export function styleAfter(text, start) {
  return text.includes("\u001b[") || text.includes("\u009b") ? parse(text, start).style : start;
}

/**
 * The text without control sequences and control characters.
 * @param {string} text
 */
export const stripped = (text) => text.replace(CONTROL, "");

/** @type {Readonly<Record<number, [number, number]>>} Flags to set and to clear */
const FLAGS = {
  1: [BOLD, 0],
  2: [DIM, 0],
  3: [ITALIC, 0],
  4: [UNDERLINE, 0],
  7: [INVERSE, 0],
  9: [STRIKE, 0],
  21: [UNDERLINE, 0],
  22: [0, BOLD | DIM],
  23: [0, ITALIC],
  24: [0, UNDERLINE],
  27: [0, INVERSE],
  29: [0, STRIKE],
};

/**
 * @param {Style} style
 * @param {string} parameters
 * @returns {Style}
 */
function restyled(style, parameters) {
  if (/[<=>?]/.test(parameters)) return style;
  const codes = parameters.split(/[;:]/).map((code) => Number(code) || 0);
  let { fg, bg, flags } = style;
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    const change = FLAGS[code];
    if (code === 0) ({ fg, bg, flags } = PLAIN);
    else if (change) flags = (flags | change[0]) & ~change[1];
    else if (code === 38 || code === 48) {
      const [colour, used] = extended(codes, at + 1);
      if (code === 38) fg = colour;
      else bg = colour;
      at += used;
    } else if (code === 39) fg = "";
    else if (code === 49) bg = "";
    else if (code >= 30 && code <= 37) fg = String(code - 30);
    else if (code >= 40 && code <= 47) bg = String(code - 40);
    else if (code >= 90 && code <= 97) fg = String(code - 82);
    else if (code >= 100 && code <= 107) bg = String(code - 92);
  }
  return { fg, bg, flags };
}

/**
 * A colour of 256 or of all, and the number of codes that it takes.
 * @param {number[]} codes
 * @param {number} at
 * @returns {[string, number]}
 */
function extended(codes, at) {
  const byte = (/** @type {number} */ index) => Math.min(255, codes[at + index] ?? 0);
  if (codes[at] === 5) return [String(byte(1)), 2];
  if (codes[at] === 2) {
    const parts = [byte(1), byte(2), byte(3)].map((part) => part.toString(16).padStart(2, "0"));
    return [`#${parts.join("")}`, 4];
  }
  return ["", 1];
}

const LEVELS = [0, 95, 135, 175, 215, 255];

/**
 * The colours of a run: text and background, empty where the output's own apply.
 * @param {Style} style
 */
export function colours({ fg, bg, flags }) {
  if (flags & INVERSE) {
    return { fg: background(bg) || "var(--output-back)", bg: css(fg) || "var(--output-text)" };
  }
  if (!bg) return { fg: css(fg), bg: "" };
  return { fg: NEUTRAL.has(fg) ? readableOn(bg) : css(fg), bg: background(bg) };
}

/** The default, black, white and the greys: on a background they have the colour that is readable there. */
const NEUTRAL = new Set(["", "0", "7", "8", "15"]);

/**
 * A colour of the style sheet: a variable for the first 16, which differ between light and dark.
 * @param {string} colour
 */
export function css(colour) {
  return named(colour, "--ansi-");
}

/**
 * A background: the first 16 are such that the output's usual text is readable on them.
 * @param {string} colour
 */
function background(colour) {
  return named(colour, "--ansi-back-");
}

/** @param {string} colour @param {string} prefix Of the variables of the first 16 */
function named(colour, prefix) {
  if (!colour) return "";
  if (isOfStyleSheet(colour)) return `var(${prefix}${colour})`;
  return `rgb(${parts(colour).join(" ")})`;
}

/** @param {string} colour */
const isOfStyleSheet = (colour) => !colour.startsWith("#") && Number(colour) < 16;

/** @param {string} bg */
function readableOn(bg) {
  if (isOfStyleSheet(bg)) return "var(--output-text)";
  const [red = 0, green = 0, blue = 0] = parts(bg).map((part) => (part / 255) ** 2.2);
  // The luminance on which black and white have the same contrast.
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
}

/**
 * Red, green and blue of a colour that is none of the first 16.
 * @param {string} colour
 */
function parts(colour) {
  if (colour.startsWith("#")) {
    return [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
  }
  const number = Number(colour);
  if (number >= 232) {
    const grey = 8 + (number - 232) * 10;
    return [grey, grey, grey];
  }
  const at = number - 16;
  return [Math.floor(at / 36), Math.floor(at / 6) % 6, at % 6].map((part) => LEVELS[part] ?? 0);
}
