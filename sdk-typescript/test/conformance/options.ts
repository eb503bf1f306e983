/**
 * From a request in protobuf's JSON mapping to this package's options: the reverse of
 * src/options/message.ts. A field that the contract does not have is refused.
 */
import { type DescField, type DescMessage, fromJson, ScalarType, toJson } from "@bufbuild/protobuf";
import { reflect, type ReflectMessage } from "@bufbuild/protobuf/reflect";
import { type Duration, durationMs, FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";

import { isDuration, isTimestamp, optionName } from "../../src/options/message.js";
import { toWord } from "../../src/options/words.js";
import type { JsonObject } from "./match.js";

export type Options = Record<string, unknown>;

/** The options of a request. */
export function toOptions(type: DescMessage, request: JsonObject): Options {
  return fieldOptions(reflect(type, fromJson(type, request)));
}

/** The options of `spawn` and `run`: those of the spec, with the command in this package's form. */
export function toSpawnOptions(type: DescMessage, request: JsonObject): Options {
  const { spec = {}, requestId } = toOptions(type, request);
  const { shell, argv, ...rest } = spec as Options;
  const { script, program: shellProgram } = (shell ?? {}) as Options;
  const args = argv === undefined ? undefined : ((argv as Options)["args"] ?? []);
  return defined({ requestId, ...rest, shell: script, shellProgram, argv: args });
}

/** The options that have a value. */
export function defined(options: Options): Options {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

function fieldOptions(message: ReflectMessage): Options {
  const set = message.desc.fields.filter((field) => message.isSet(field) || isPlainBool(field));
  return Object.fromEntries(set.map((field) => [optionName(field), optionOf(message, field)]));
}

/** An absent bool means false in the contract, whatever the default of the client's option is. */
function isPlainBool(field: DescField): boolean {
  return (
    field.scalar === ScalarType.BOOL &&
    field.fieldKind === "scalar" &&
    field.presence === FeatureSet_FieldPresence.IMPLICIT
  );
}

function optionOf(message: ReflectMessage, field: DescField): unknown {
  switch (field.fieldKind) {
    case "message": {
      const nested = message.get(field);
      if (isDuration(field)) {
        return durationMs(nested.message as Duration);
      }
      if (isTimestamp(field)) {
        return nested.message;
      }
      return field.message.fields.length === 0 ? true : fieldOptions(nested);
    }
    case "enum":
      return toWord(field.enum.value[message.get(field)]?.localName ?? "");
    case "list":
      return [...message.get(field)].map((item) => itemOptions(field, item));
    case "map":
      return (toJson(message.desc, message.message) as JsonObject)[field.jsonName];
    case "scalar":
      return message.get(field);
  }
}

function itemOptions(field: DescField & { fieldKind: "list" }, item: unknown): unknown {
  switch (field.listKind) {
    case "enum":
      return toWord(field.enum.value[item as number]?.localName ?? "");
    case "message":
      return fieldOptions(item as ReflectMessage);
    case "scalar":
      return item;
  }
}
