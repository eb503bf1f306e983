/** The options that set the fields which an error of the daemon names. */
import type { DescMessage } from "@bufbuild/protobuf";

import { BackgroundTasks } from "../gen/heeler/v1/index.js";
import { isDuration, optionName } from "./message.js";

/** The options whose names do not follow from those of their fields. */
const OWN: ReadonlyMap<string, string> = new Map([
  ["spec.command", "shell or argv"],
  ["spec.shell.script", "shell"],
  ["spec.shell.program", "shellProgram"],
  ["spec.argv.args", "argv"],
  ["after_revision", "after"],
  ["epoch", "after"],
]);

/** The messages whose fields are options of the call itself, such as `spawn` and `host`. */
const UNNAMED: ReadonlySet<string> = new Set(["spec", "register", "join"]);

/**
 * The option that sets a field of a request: `stop.graceMs` for `spec.stop.grace`. Indexes are kept, and
 * a key at the end.
 */
export function optionOf(field: string): string {
  const { path = field, index = "" } =
    /^(?<path>(?:[^[]|\[\d+\](?=\.))*)(?<index>.*)$/su.exec(field)?.groups ?? {};
  return (OWN.get(path) ?? derived(path) ?? path) + index;
}

function derived(path: string): string | undefined {
  const found = BackgroundTasks.methods.flatMap(({ input }) => walk(input, path.split(".")));
  // Two requests have a field `wait`, and only the one that is a time can have a bad value.
  const best = found.find(({ isTime }) => isTime) ?? found[0];
  return best?.names.join(".");
}

interface Found {
  readonly names: readonly string[];
  readonly isTime: boolean;
}

function walk(type: DescMessage, [segment = "", ...rest]: readonly string[]): Found[] {
  const { name, index = "" } = /^(?<name>[^[]*)(?<index>.*)$/su.exec(segment)?.groups ?? {};
  const field = type.fields.find((candidate) => candidate.name === name);
  if (field === undefined) {
    return [];
  }
  const names = UNNAMED.has(field.name) ? [] : [optionName(field) + index];
  if (rest.length === 0) {
    return [{ names, isTime: isDuration(field) }];
  }
  return field.message === undefined
    ? []
    : walk(field.message, rest).map((found) => ({ ...found, names: [...names, ...found.names] }));
}
