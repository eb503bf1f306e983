/** What to start, and how. */
import { randomUUID } from "node:crypto";

import { create } from "@bufbuild/protobuf";

import type { CallOptions } from "./call.js";
import { type SpawnRequest, SpawnRequestSchema } from "./gen/heeler/v1/background_tasks_pb.js";
import {
  ArgvCommandSchema,
  EnvDefaults,
  ShellCommandSchema,
  type StopPolicy,
  StopPolicySchema,
  TaskKind,
} from "./gen/heeler/v1/task_pb.js";
import { type RuleOptions, toRules } from "./rules.js";
import { toOptionalDuration } from "./time.js";

/** What to start: either a script for a shell, or a program with its arguments. */
export type SpawnOptions = (ShellOptions | ArgvOptions) & TaskOptions & CallOptions;

/** A script, run by a shell. */
export interface ShellOptions {
  /** The script. */
  readonly shell: string;
  /** Which shell runs it: an absolute path. By default `bash` where there is one, else `/bin/sh`. */
  readonly shellProgram?: string | undefined;
  readonly argv?: undefined;
}

/** A program and its arguments, run as they are. */
export interface ArgvOptions {
  /** The program first. */
  readonly argv: readonly string[];
  readonly shell?: undefined;
}

/** How to start it. */
export interface TaskOptions extends RuleOptions {
  /**
   * By what the daemon knows this request again, also after a crash of the caller: up to 128 bytes. By
   * default a fresh one for each call, so that a lost answer can be asked for again. Empty: the daemon
   * does not know it again, and the call is repeated only while it cannot have been heard.
   */
  readonly requestId?: string | undefined;
  /** The conversation that the task belongs to. */
  readonly sessionId?: string | undefined;
  /** A name for people. */
  readonly name?: string | undefined;
  /** What kind of work it is: SHELL by default, or AGENT. */
  readonly kind?: TaskKind | undefined;
  /** The absolute path to start in. By default the daemon's configured one, else the user's home. */
  readonly workingDirectory?: string | undefined;
  /** Variables of the task's environment. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Variables to take out of the environment that the task would otherwise inherit. */
  readonly envRemove?: readonly string[] | undefined;
  /** Whether the task is told by its environment that nobody is looking. */
  readonly envDefaults?: EnvDefaults | undefined;
  /** Data for the client's own filters. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** The live task that spawns this one. */
  readonly parentId?: string | undefined;
  /**
   * How long the task may run in the background, counted from its start or, if it begins in the foreground,
   * from its release. By default for ever.
   */
  readonly timeoutMs?: number | undefined;
  /** How long the tree may take to obey the stop signal before it is killed: 5 s by default. */
  readonly graceMs?: number | undefined;
  /** The signal to ask with, e.g. `SIGINT`: SIGTERM by default. */
  readonly stopSignal?: string | undefined;
}

export function toSpawnRequest(options: SpawnOptions): SpawnRequest {
  return create(SpawnRequestSchema, {
    requestId: options.requestId ?? randomUUID(),
    sessionId: options.sessionId ?? "",
    name: options.name ?? "",
    kind: options.kind ?? TaskKind.UNSPECIFIED,
    command: toCommand(options),
    workingDirectory: options.workingDirectory ?? "",
    env: { ...options.env },
    envRemove: [...(options.envRemove ?? [])],
    envDefaults: options.envDefaults ?? EnvDefaults.UNSPECIFIED,
    labels: { ...options.labels },
    parentId: options.parentId ?? "",
    timeout: toOptionalDuration("timeoutMs", options.timeoutMs),
    stopPolicy: toStopPolicy(options),
    ...toRules(options),
  });
}

/** Nothing given becomes nothing sent: the daemon says what is missing. */
function toCommand(options: {
  readonly shell?: string | undefined;
  readonly shellProgram?: string | undefined;
  readonly argv?: readonly string[] | undefined;
}): SpawnRequest["command"] {
  const { shell, argv } = options;
  if (shell !== undefined && argv !== undefined) {
    throw new TypeError("give either shell or argv, not both");
  }
  if (shell !== undefined) {
    const program = options.shellProgram ?? "";
    return { case: "shell", value: create(ShellCommandSchema, { script: shell, program }) };
  }
  if (argv !== undefined) {
    return { case: "argv", value: create(ArgvCommandSchema, { args: [...argv] }) };
  }
  return { case: undefined };
}

/** What is not said of stopping is left to the daemon. */
function toStopPolicy(options: TaskOptions): StopPolicy | undefined {
  const { graceMs, stopSignal } = options;
  if (graceMs === undefined && stopSignal === undefined) {
    return undefined;
  }
  const grace = toOptionalDuration("graceMs", graceMs);
  return create(StopPolicySchema, { signal: stopSignal ?? "", grace });
}
