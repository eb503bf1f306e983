/**
 * From the fields of the contract's requests, in protobuf's JSON mapping, to this package's options. What
 * it does not know it refuses: nothing of a case is passed over.
 */
import { type DescEnum, enumFromJson, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { durationMs, DurationSchema } from "@bufbuild/protobuf/wkt";

import {
  EnvDefaultsSchema,
  TaskEventTypeSchema,
  TaskKindSchema,
  TaskStateSchema,
} from "../../src/index.js";
import { isObject, type JsonObject } from "./match.js";

type Options = Record<string, unknown>;
type Table = Readonly<Record<string, (value: JsonValue) => Options>>;

/** The options that these fields stand for. */
export function translate(what: string, table: Table, fields: JsonObject): Options {
  const options: Options = {};
  for (const [name, value] of Object.entries(fields)) {
    const field = Object.hasOwn(table, name) ? table[name] : undefined;
    if (field === undefined) {
      throw new Error(`unknown field ${what}.${name}`);
    }
    Object.assign(options, field(value));
  }
  return options;
}

/** Fields that the options have under the same name and as they are. */
function same(...names: string[]): Table {
  return Object.fromEntries(names.map((name) => [name, (value) => ({ [name]: value })]));
}

/** 64-bit numbers. */
function bigints(...names: string[]): Table {
  return Object.fromEntries(
    names.map((name) => [name, (value) => ({ [name]: BigInt(value as string) })]),
  );
}

/** Durations, which the options have in milliseconds. */
function spans(...names: string[]): Table {
  return Object.fromEntries(
    names.map((name) => [
      name,
      (value) => ({ [`${name}Ms`]: durationMs(fromJson(DurationSchema, value)) }),
    ]),
  );
}

/** Values of enums, which the options have as words. */
function words(prefixes: Readonly<Record<string, string>>): Table {
  return Object.fromEntries(
    Object.entries(prefixes).map(([name, prefix]) => [
      name,
      (value) => {
        if (typeof value !== "string" || !value.startsWith(prefix)) {
          throw new Error(`${name} cannot be ${JSON.stringify(value)}`);
        }
        return { [name]: value.slice(prefix.length).toLowerCase() };
      },
    ]),
  );
}

/** Values of enums, alone or in lists, which the options have as such. */
function enums(schemas: Readonly<Record<string, DescEnum>>): Table {
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [
      name,
      (value) => ({
        [name]: Array.isArray(value)
          ? value.map((one) => enumFromJson(schema, one as string))
          : enumFromJson(schema, value as string),
      }),
    ]),
  );
}

/** A message within a message. */
function nested(name: string, table: Table, into: (options: Options) => Options): Table {
  return {
    [name]: (value) => {
      if (!isObject(value)) {
        throw new Error(`${name} is no message`);
      }
      return into(translate(name, table, value));
    },
  };
}

const FILTER: Table = {
  ...same("taskIds", "sessionId", "labels", "parentId"),
  ...enums({ kinds: TaskKindSchema, states: TaskStateSchema }),
};

const filter = nested("filter", FILTER, (options) => ({ filter: options }));

const START = bigints("offset", "tailBytes");

export const SPAWN: Table = {
  ...same("requestId", "sessionId", "name", "workingDirectory", "env", "envRemove", "labels"),
  ...same("parentId", "exclusiveKey", "queue"),
  ...enums({ kind: TaskKindSchema, envDefaults: EnvDefaultsSchema }),
  ...spans("timeout", "foregroundTimeout", "holderWindow", "idleTimeout", "staleAfter"),
  ...words({
    placement: "PLACEMENT_",
    onForegroundTimeout: "FOREGROUND_TIMEOUT_ACTION_",
    onHolderGone: "HOLDER_GONE_ACTION_",
    lingering: "LINGERING_POLICY_",
    staleAction: "STALE_ACTION_",
    exclusiveMode: "EXCLUSIVE_MODE_",
  }),
  ...nested("argv", same("args"), ({ args }) => ({ argv: args })),
  ...nested("shell", same("script", "program"), ({ script, program }) => ({
    shell: script,
    shellProgram: program,
  })),
  ...nested(
    "stopPolicy",
    { ...spans("grace"), ...same("signal") },
    ({ graceMs, signal: stopSignal }) => ({ graceMs, stopSignal }),
  ),
};

export const ATTACH: Table = { ...same("taskId"), ...START };

export const DETACH: Table = {
  ...same("taskId", "sessionId", "reason", "actor"),
  ...spans("timeout"),
};

export const CANCEL: Table = {
  ...same("taskId", "sessionId", "reason", "actor", "wait", "cascade"),
  ...filter,
  ...words({ mode: "CANCEL_MODE_" }),
  ...spans("grace"),
  signal: (value) => ({ stopSignal: value }),
};

export const LIST: Table = { ...filter, ...same("includeFinished", "pageSize", "pageToken") };

export const TASK: Table = same("taskId");

export const WAIT: Table = {
  ...same("taskIds", "sessionId", "count"),
  ...words({ until: "WAIT_CONDITION_" }),
  ...spans("timeout"),
};

export const READ: Table = {
  ...same("taskId", "maxBytes"),
  ...START,
  ...spans("wait"),
  ...words({ view: "OUTPUT_VIEW_" }),
};

export const WATCH: Table = {
  ...bigints("afterRevision"),
  ...same("stateId", "initialState"),
  ...filter,
  ...enums({ types: TaskEventTypeSchema }),
  ...spans("bookmarkInterval"),
};

export const REMOVE: Table = {
  ...nested("tasks", same("taskIds"), (options) => options),
  ...nested("finished", FILTER, (options) => ({ finished: options })),
};

export const QUEUE: Table = same("name", "slots", "paused");

export const FILE: Table = same("file");

export const NOTHING: Table = {};
