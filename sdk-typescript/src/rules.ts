/**
 * The rules that a task lives by: whom it holds, what its silence means, what it shares a turn with. They
 * are checked by the daemon, which knows which of them go together.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";

import { choose } from "./choice.js";
import type { SpawnRequestSchema } from "./gen/heeler/v1/background_tasks_pb.js";
import {
  ExclusiveMode,
  ForegroundTimeoutAction,
  HolderGoneAction,
  LingeringPolicy,
  Placement,
  StaleAction,
} from "./gen/heeler/v1/task_pb.js";
import { toOptionalDuration } from "./time.js";

/** Whom a foreground task holds, and for how long. */
export interface ForegroundOptions {
  /** How long it may stay in the foreground, counted from its start: 60 s by default. */
  readonly foregroundTimeoutMs?: number | undefined;
  /** What happens then: `detach` (the default), it goes on in the background; or `cancel`. */
  readonly onForegroundTimeout?: "detach" | "cancel" | undefined;
  /**
   * What happens when nobody holds it any more: `cancel` (the default); `detach`, it goes on in the
   * background; or `keep`, it stays in the foreground for whoever comes.
   */
  readonly onHolderGone?: "cancel" | "detach" | "keep" | undefined;
  /** How long nobody may hold it before that happens: 10 s by default. */
  readonly holderWindowMs?: number | undefined;
}

/** The rules of any task. */
export interface RuleOptions extends ForegroundOptions {
  /** Whether a caller is held by the task, with `attach`: `background` by default. */
  readonly placement?: "background" | "foreground" | undefined;
  /**
   * What happens when the leader exits and others of its tree do not: `track` (the default), the task
   * goes on until they are gone; `kill`; or `release`, they are left to themselves and named.
   */
  readonly lingering?: "track" | "kill" | "release" | undefined;
  /** How long it may write no output before it is stopped. By default for ever. */
  readonly idleTimeoutMs?: number | undefined;
  /** How long it may write no output before a STALE event says so. By default for ever. */
  readonly staleAfterMs?: number | undefined;
  /** What else happens then: `notify` (the default), nothing; or `cancel`. */
  readonly staleAction?: "notify" | "cancel" | undefined;
  /** Of the tasks with the same key, one is live at a time. */
  readonly exclusiveKey?: string | undefined;
  /**
   * What happens when another task has the key: `reject` (the default), this one is refused; `replace`,
   * the other is stopped and proven gone first; or `queue`, this one waits.
   */
  readonly exclusiveMode?: "reject" | "replace" | "queue" | undefined;
  /** The queue in which it waits for its turn. Not together with `replace`. */
  readonly queue?: string | undefined;
}

const PLACEMENTS = {
  background: Placement.BACKGROUND,
  foreground: Placement.FOREGROUND,
} as const;

const TIMEOUT_ACTIONS = {
  detach: ForegroundTimeoutAction.DETACH,
  cancel: ForegroundTimeoutAction.CANCEL,
} as const;

const GONE_ACTIONS = {
  cancel: HolderGoneAction.CANCEL,
  detach: HolderGoneAction.DETACH,
  keep: HolderGoneAction.KEEP,
} as const;

const LINGERING = {
  track: LingeringPolicy.TRACK,
  kill: LingeringPolicy.KILL,
  release: LingeringPolicy.RELEASE,
} as const;

const STALE_ACTIONS = { notify: StaleAction.NOTIFY, cancel: StaleAction.CANCEL } as const;

const EXCLUSIVE_MODES = {
  reject: ExclusiveMode.REJECT,
  replace: ExclusiveMode.REPLACE,
  queue: ExclusiveMode.QUEUE,
} as const;

/** The rules as a request has them. What is not said is left to the daemon. */
export function toRules(options: RuleOptions): MessageInitShape<typeof SpawnRequestSchema> {
  const { placement, onForegroundTimeout, onHolderGone } = options;
  const { lingering, staleAction, exclusiveMode } = options;
  return {
    placement: chosen("placement", PLACEMENTS, placement) ?? Placement.UNSPECIFIED,
    foregroundTimeout: toOptionalDuration("foregroundTimeoutMs", options.foregroundTimeoutMs),
    onForegroundTimeout:
      chosen("onForegroundTimeout", TIMEOUT_ACTIONS, onForegroundTimeout) ??
      ForegroundTimeoutAction.UNSPECIFIED,
    onHolderGone:
      chosen("onHolderGone", GONE_ACTIONS, onHolderGone) ?? HolderGoneAction.UNSPECIFIED,
    holderWindow: toOptionalDuration("holderWindowMs", options.holderWindowMs),
    lingering: chosen("lingering", LINGERING, lingering) ?? LingeringPolicy.UNSPECIFIED,
    idleTimeout: toOptionalDuration("idleTimeoutMs", options.idleTimeoutMs),
    staleAfter: toOptionalDuration("staleAfterMs", options.staleAfterMs),
    staleAction: chosen("staleAction", STALE_ACTIONS, staleAction) ?? StaleAction.UNSPECIFIED,
    exclusiveKey: options.exclusiveKey ?? "",
    exclusiveMode:
      chosen("exclusiveMode", EXCLUSIVE_MODES, exclusiveMode) ?? ExclusiveMode.UNSPECIFIED,
    queue: options.queue ?? "",
  };
}

function chosen<T>(
  field: string,
  choices: Readonly<Record<string, T>>,
  word: string | undefined,
): T | undefined {
  return word === undefined ? undefined : choose(field, choices, word);
}
