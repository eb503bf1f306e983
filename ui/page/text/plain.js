// Text of others, made safe to show in one line.

// Controls, and characters that change the direction of what follows.
// eslint-disable-next-line no-control-regex -- they are what is replaced
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/**
 * One line: white space becomes a space, other control characters become U+00B7.
 * @param {string} text
 */
export function line(text) {
  return text.replace(/\s+/g, " ").trim().replace(HIDDEN, "·");
}

/**
 * Several lines: line ends and tabs stay.
 * @param {string} text
 */
export function lines(text) {
  return text
    .replace(/\r\n?/g, "\n")
    .replace(HIDDEN, (hidden) => (hidden === "\n" || hidden === "\t" ? hidden : "·"));
}
