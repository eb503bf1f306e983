/** The specification of a task: the options of `spawn` and `run`. */
import { randomUUID } from "node:crypto";

import { type CallOptions, splitOptions } from "../connection/call.js";
import type {
  DisconnectAction,
  EnvironmentDefaults,
  ExclusiveMode,
  ForegroundTimeoutAction,
  OrphanPolicy,
  OutputLimitAction,
  ReadyTimeoutAction,
  StaleAction,
  TaskKind,
  TaskRights,
  TaskSpec,
} from "../gen/heeler/v1/index.js";
import type { FieldOptions } from "./message.js";
import type { PatternOptions } from "./output.js";
import type { Word } from "./words.js";

/** A task to start: a script for a shell, or a program with its arguments. */
export type SpawnOptions = (ShellOptions | ArgvOptions) & TaskOptions & CallOptions;

/** A script, run by a shell. */
export interface ShellOptions {
  readonly shell: string;
  /** The absolute path of the shell. By default `bash` if the task's PATH has it, else `/bin/sh`. */
  readonly shellProgram?: string | undefined;
  readonly argv?: undefined;
}

/** A program and its arguments, run without a shell. */
export interface ArgvOptions {
  /** The program first. */
  readonly argv: readonly string[];
  readonly shell?: undefined;
  readonly shellProgram?: undefined;
}

/** The options of any task, except its command. */
export interface TaskOptions {
  /**
   * Makes the call safe to repeat, also after a crash of the caller: up to 128 bytes. By default a new
   * one for each call, so that a lost answer can be asked for again. Empty: the daemon does not
   * recognise the request, and the call is repeated only if the daemon cannot have received it.
   */
  readonly requestId?: string | undefined;
  /** `shell` by default. */
  readonly kind?: Word<typeof TaskKind> | undefined;
  /** A name for people. It need not be unique. */
  readonly name?: string | undefined;
  /** The conversation that the task belongs to. */
  readonly sessionId?: string | undefined;
  /** The live task that spawns this one. */
  readonly parentId?: string | undefined;
  /** Data for the client's own filters. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** The absolute path to start in. By default the daemon's configured one, else the user's home. */
  readonly workingDirectory?: string | undefined;
  readonly environment?: EnvironmentOptions | undefined;
  /**
   * Maximum time in the background, counted from the start or, for a task that starts in the
   * foreground, from the moment it leaves the foreground. By default no limit.
   */
  readonly timeoutMs?: number | undefined;
  /** Maximum time without output; then the task is stopped. By default no limit. */
  readonly idleTimeoutMs?: number | undefined;
  /** The way to stop the task. By default SIGTERM and a grace of 5 s. */
  readonly stop?: StopOptions | undefined;
  /** Starts the task in the foreground; `{}` for all defaults. By default in the background. */
  readonly foreground?: ForegroundOptions | undefined;
  /** Detects a task that has stopped writing output. By default a task is never stale. */
  readonly silence?: SilenceOptions | undefined;
  /** A key that only one live task has at a time. */
  readonly exclusive?: ExclusiveOptions | undefined;
  /** The queue in which the task waits for a slot. Cannot be combined with `replace`. */
  readonly queue?: string | undefined;
  /**
   * Treatment of processes that outlive the leader. `track` (the default): the task continues until
   * they are gone. `kill`: they are killed. `abandon`: they live on, and the task names them.
   */
  readonly orphanPolicy?: Word<typeof OrphanPolicy> | undefined;
  /**
   * The calls that processes of the task may make. `children` (the default): report on the task, spawn children, and
   * see and act on descendants. `report`: report alone. `none`: no call. `all`: every call.
   */
  readonly rights?: Word<typeof TaskRights> | undefined;
  /** The limit on the output, and patterns to look for. By default `rotate` at 64 MiB, no pattern. */
  readonly output?: OutputPolicyOptions | undefined;
  /** Gives the task a stdin to write to. By default, without a terminal, stdin is at its end from the start. */
  readonly input?: InputOptions | undefined;
  /** Gives the task a terminal. By default it has none. */
  readonly terminal?: TerminalOptions | undefined;
  /** Decides when the task is ready. By default it has no readiness. */
  readonly ready?: ReadyOptions | undefined;
  /** Starts the task again when its leader fails. By default a failure ends the task. */
  readonly restart?: RestartOptions | undefined;
}

/** Changes to a task's environment. */
export interface EnvironmentOptions {
  /** Variables to set. */
  readonly variables?: Readonly<Record<string, string>> | undefined;
  /** Variables to remove. */
  readonly remove?: readonly string[] | undefined;
  /** `nonInteractive` (the default): no pager, no editor, no colour, no prompts. `none`: no defaults. */
  readonly defaults?: Word<typeof EnvironmentDefaults> | undefined;
}

/** The way in which a task is stopped: the signal, then the grace, then a kill of the whole tree. */
export interface StopOptions {
  /** Time between the signal and the kill: 5 s by default. */
  readonly graceMs?: number | undefined;
  /** Time before the signal for a worker that listens: 10 s by default. */
  readonly softGraceMs?: number | undefined;
  /** The name of the signal, such as `SIGINT`. SIGTERM by default. */
  readonly signal?: string | undefined;
}

/** The rules of a task that starts in the foreground. */
export interface ForegroundOptions {
  /** Maximum time in the foreground, counted from the start: 60 s by default. */
  readonly timeoutMs?: number | undefined;
  /** Action after that time: `detach` by default. */
  readonly onTimeout?: Word<typeof ForegroundTimeoutAction> | undefined;
  /**
   * Action when the last attached client disconnects. `cancel` by default. `detach`: the task continues
   * in the background. `keep`: it stays in the foreground.
   */
  readonly onDisconnect?: Word<typeof DisconnectAction> | undefined;
  /** Time for a client to attach, or to attach again after a disconnect: 10 s by default. */
  readonly reattachWindowMs?: number | undefined;
}

/** The rules for a task that has stopped writing output. */
export interface SilenceOptions {
  /** Time without output after which the task is stale. */
  readonly staleAfterMs: number;
  /** Action besides the STALE event: `notify` (the default) does nothing else, `cancel` stops it. */
  readonly onStale?: Word<typeof StaleAction> | undefined;
}

/** The rules for a task's output. Offsets count every byte that the task has written, kept or not. */
export interface OutputPolicyOptions {
  /** The most disk space for the output, in bytes: 64 MiB by default, at least 256 KiB. */
  readonly maxBytes?: bigint | number | undefined;
  /** Bytes that are kept from the beginning with `rotate`: 1 MiB by default, or a quarter of a smaller limit. */
  readonly headBytes?: bigint | number | undefined;
  /**
   * Action at the limit. `rotate` (the default): the beginning and the latest output are kept.
   * `truncate`: further output is dropped. `kill`: the whole tree is killed.
   */
  readonly onLimit?: Word<typeof OutputLimitAction> | undefined;
  /** Patterns to look for: at most 16. `updateTask` can change them. */
  readonly patterns?: readonly PatternOptions[] | undefined;
}

/** The terminal of a task. */
export interface TerminalOptions {
  /** Columns, from 1 to 1000: 80 by default. */
  readonly columns?: number | undefined;
  /** Rows, from 1 to 1000: 24 by default. */
  readonly rows?: number | undefined;
  /** The type, which the task gets as TERM: `xterm-256color` by default. */
  readonly term?: string | undefined;
}

/** The rules for a task with input. Its stdin stays open until it is closed. */
export interface InputOptions {
  /** Time without output after which the task is looked at. By default only when it becomes stale. */
  readonly notifyAfterMs?: number | undefined;
}

/** The rule by which a task is ready: one of `port`, `httpUrl`, `command` and `pattern`. */
export interface ReadyOptions {
  /** A process of the task listens on this TCP port; 0 for any port. */
  readonly port?: number | undefined;
  /** A GET of this `http:` URL is answered with a status from 200 to 399. */
  readonly httpUrl?: string | undefined;
  /** This program, with its arguments, exits with 0. */
  readonly command?: { readonly args: readonly string[] } | undefined;
  /** A line of the output matches this regular expression, in the syntax of the daemon. */
  readonly pattern?: string | undefined;
  /** Time between two looks: 1 s by default. The first ones follow faster. Not with `pattern`. */
  readonly intervalMs?: number | undefined;
  /** Time from the start within which the task must be ready. By default no limit. */
  readonly timeoutMs?: number | undefined;
  /** Action after that time: `notify` (the default) does nothing, `cancel` stops the task. */
  readonly onTimeout?: Word<typeof ReadyTimeoutAction> | undefined;
}

/** The rule by which a task whose leader fails is started again, under the same id. */
export interface RestartOptions {
  /** Time from a failure to the next attempt: 1 s by default. It doubles with every further failure in a row. */
  readonly delayMs?: number | undefined;
  /** The longest such time: 30 s by default. */
  readonly maxDelayMs?: number | undefined;
  /** The most restarts in a row; 0 for no limit. 5 by default. */
  readonly maxRestarts?: number | undefined;
  /** The run of an attempt after which its failure is the first one in a row again: 60 s by default. */
  readonly resetAfterMs?: number | undefined;
}

/** A key that only one live task has at a time. */
export interface ExclusiveOptions {
  readonly key: string;
  /**
   * Behaviour if another task has the key. `reject` (the default): this task is refused. `replace`: the
   * other is stopped first. `queue`: this task waits.
   */
  readonly mode?: Word<typeof ExclusiveMode> | undefined;
}

/** The fields of the request. The daemon refuses a missing command. */
export function toSpawnFields(
  options: SpawnOptions,
): CallOptions & { requestId: string; spec: FieldOptions<TaskSpec> } {
  const { call, fields } = splitOptions(options);
  const { requestId = randomUUID(), shell, shellProgram: program, argv, ...spec } = fields;
  if (shell !== undefined && argv !== undefined) {
    throw new TypeError("give either shell or argv, not both");
  }
  const command = {
    shell: shell === undefined ? undefined : { script: shell, program },
    argv: argv === undefined ? undefined : { args: argv },
  };
  return { ...call, requestId, spec: { ...spec, ...command } };
}
