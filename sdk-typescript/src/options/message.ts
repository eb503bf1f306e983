/**
 * Builds requests from options, for every call alike. An option has the name of the field that it sets:
 *
 *   field in the contract          option
 *   Duration timeout               timeoutMs: number of milliseconds
 *   enum on_timeout                onTimeout: a word, such as "cancel"
 *   StopPolicy stop                stop: an object of options
 *   ForcedStop force (no fields)   force: true
 *   Timestamp since                since: a Date, or a time of an answer
 *   repeated OutputPattern         an array of objects of options
 *   oneof { offset, tail_bytes }   offset or tailBytes, not both
 *
 * A new field of a request needs no code here. Values are checked by the daemon; this module refuses
 * only what cannot be sent, such as an unknown option or word.
 */
import {
  create,
  type DescField,
  type DescMessage,
  type MessageInitShape,
  type MessageShape,
  ScalarType,
} from "@bufbuild/protobuf";
import { type Duration, DurationSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";

import { toDuration, toTimestamp } from "../connection/time.js";
import { fromWord } from "./words.js";

/** The names of the options that set the fields of a message. */
export type OptionName<M> = {
  [K in keyof M & string]: K extends `$${string}`
    ? never
    : NonNullable<M[K]> extends Duration
      ? `${K}Ms`
      : M[K] extends { case: infer C }
        ? C & string
        : K;
}[keyof M & string];

/** Options that set fields of a message, by their names. */
export type FieldOptions<M> = Readonly<Partial<Record<OptionName<M>, unknown>>>;

/** Builds a message from options. */
export function toMessage<D extends DescMessage>(
  schema: D,
  options: FieldOptions<MessageShape<D>>,
): MessageShape<D> {
  return create(schema, toInit(schema, options, "") as MessageInitShape<D>);
}

/** The name of the option that sets a field, as in OptionName. */
export function optionName(field: DescField): string {
  return isDuration(field) ? `${field.localName}Ms` : field.localName;
}

export function isDuration(field: DescField): boolean {
  return field.fieldKind === "message" && field.message.typeName === DurationSchema.typeName;
}

export function isTimestamp(field: DescField): boolean {
  return field.fieldKind === "message" && field.message.typeName === TimestampSchema.typeName;
}

function toInit(type: DescMessage, options: object, path: string): Record<string, unknown> {
  const given = new Map(Object.entries(options).filter(([, value]) => value !== undefined));
  const init: Record<string, unknown> = {};
  for (const field of type.fields) {
    const name = optionName(field);
    const value = given.has(name) ? toValue(field, given.get(name), path + name) : undefined;
    given.delete(name);
    if (value === undefined) {
      continue;
    }
    if (field.oneof === undefined) {
      init[field.localName] = value;
    } else {
      const other = init[field.oneof.localName] as { case: string } | undefined;
      if (other !== undefined) {
        throw new TypeError(`give either ${path}${other.case} or ${path}${name}, not both`);
      }
      init[field.oneof.localName] = { case: field.localName, value };
    }
  }
  const [unknown] = given.keys();
  if (unknown !== undefined) {
    throw new TypeError(`there is no option ${path}${unknown}`);
  }
  return init;
}

function toValue(field: DescField, value: unknown, path: string): unknown {
  switch (field.fieldKind) {
    case "message":
      if (isTimestamp(field)) {
        return toTimestamp(path, value);
      }
      return isDuration(field)
        ? toDuration(path, value as number)
        : toNested(field.message, value, path);
    case "enum":
      return fromWord(path, field.enum, value);
    case "list":
      return [...(value as Iterable<unknown>)].map((item, index) =>
        toItem(field, item, `${path}[${index.toString()}]`),
      );
    case "map":
      return field.mapKind === "scalar" && field.scalar === ScalarType.UINT64
        ? mapValues(value as object, BigInt)
        : { ...(value as object) };
    case "scalar":
      return field.scalar === ScalarType.UINT64 && typeof value === "number"
        ? BigInt(value)
        : value;
  }
}

function toItem(field: DescField & { fieldKind: "list" }, item: unknown, path: string): unknown {
  switch (field.listKind) {
    case "enum":
      return fromWord(path, field.enum, item);
    case "message":
      return toNested(field.message, item, path);
    case "scalar":
      return item;
  }
}

function mapValues<T>(map: object, convert: (value: never) => T): Record<string, T> {
  const entries = Object.entries(map).map(([key, value]) => [key, convert(value as never)]);
  return Object.fromEntries(entries) as Record<string, T>;
}

/** A group of options; `true` or `false` for a group that has none. */
function toNested(type: DescMessage, value: unknown, path: string): unknown {
  if (type.fields.length === 0 && typeof value === "boolean") {
    return value ? {} : undefined;
  }
  if (typeof value !== "object" || value === null) {
    throw new TypeError(`${path} must be an object, not ${String(value)}`);
  }
  // The options of a spec are those of `spawn` itself.
  return toInit(type, value, path === "spec" ? "" : `${path}.`);
}
