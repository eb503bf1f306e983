/** Compares a result with the expectation of a case, in protobuf's JSON mapping. */
import type { JsonValue } from "@bufbuild/protobuf";

export type JsonObject = Record<string, JsonValue>;

/** Throws an error with the path of the first difference. */
export function match(path: string, expected: JsonValue, found: JsonValue | undefined): void {
  if (expected === null) {
    check(path, found === undefined, "absent", found);
  } else if (Array.isArray(expected)) {
    check(path, Array.isArray(found) && found.length === expected.length, expected, found);
    const items = found as JsonValue[];
    expected.forEach((item, index) => {
      match(`${path}[${index.toString()}]`, item, items[index]);
    });
  } else if (isObject(expected)) {
    check(path, found !== undefined && isObject(found), expected, found);
    for (const [name, value] of Object.entries(expected)) {
      match(`${path}.${name}`, value, (found as JsonObject)[name]);
    }
  } else {
    matchText(path, String(expected), found);
  }
}

export function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Compares scalars as strings, because the mapping writes 64-bit numbers as strings. */
function matchText(path: string, expected: string, found: JsonValue | undefined): void {
  const text = typeof found === "object" || found === undefined ? undefined : String(found);
  const isSame = expected.startsWith("~")
    ? text !== undefined && new RegExp(`^(?:${expected.slice(1)})$`, "su").test(text)
    : text === expected;
  check(path, isSame, expected, found);
}

function check(path: string, isTrue: boolean, expected: JsonValue, found?: JsonValue): void {
  if (!isTrue) {
    const shown = (JSON.stringify(found) as string | undefined) ?? "nothing";
    throw new Error(
      `${path} should be ${JSON.stringify(expected).slice(0, 200)}, and is ${shown.slice(0, 300)}`,
    );
  }
}
