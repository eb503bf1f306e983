// Texts of sizes, times and durations.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/**
 * A number of bytes, such as `12.0 MiB`.
 * @param {number} bytes
 */
export function size(bytes) {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit] ?? ""}`;
}

/**
 * A duration in one or two units, such as `4m 10s`.
 * @param {number} seconds
 */
export function duration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (seconds < 1) return `${Math.max(0, Math.round(seconds * 1000))}ms`;
  if (whole < 10) return `${(Math.floor(seconds * 10) / 10).toFixed(1)}s`;
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${whole % 60}s`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)}h ${Math.floor((whole % 3600) / 60)}m`;
  return `${Math.floor(whole / 86_400)}d ${Math.floor((whole % 86_400) / 3600)}h`;
}

/**
 * The age of something in one unit where it is enough: it changes at most once per second.
 * @param {number} milliseconds
 */
export function age(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  return seconds < 60 ? `${seconds}s` : duration(seconds);
}

/**
 * The seconds of protobuf's form, such as `1.500s`.
 * @param {string | undefined} text
 */
export function seconds(text) {
  return text ? Number.parseFloat(text) : 0;
}

/** @type {Map<string, number>} */
const parsed = new Map();

/**
 * The milliseconds of a timestamp since 1970; 0 if there is none.
 * @param {string | undefined} text
 */
export function time(text) {
  if (!text) return 0;
  let value = parsed.get(text);
  if (value === undefined) {
    value = Date.parse(text) || 0;
    if (parsed.size > 20_000) parsed.clear();
    parsed.set(text, value);
  }
  return value;
}

const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});
const DAY = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

/**
 * The time of day, with the day if it is not today.
 * @param {string | undefined} text
 * @param {number} now
 */
export function clock(text, now = Date.now()) {
  const at = time(text);
  if (!at) return "";
  const isToday = new Date(at).toDateString() === new Date(now).toDateString();
  return isToday ? CLOCK.format(at) : `${DAY.format(at)}, ${CLOCK.format(at)}`;
}

/**
 * A number with separators.
 * @param {number | string} value
 */
export function count(value) {
  return Number(value).toLocaleString("en-US");
}

/**
 * A noun with its number.
 * @param {number} value
 * @param {string} noun
 * @param {string} [plural]
 */
export function counted(value, noun, plural = `${noun}s`) {
  return `${count(value)} ${value === 1 ? noun : plural}`;
}
