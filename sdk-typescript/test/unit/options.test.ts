import assert from "node:assert/strict";
import { test } from "node:test";

import type { MessageShape } from "@bufbuild/protobuf";

import { toDuration } from "../../src/connection/time.js";
import { CancelRequestSchema, SpawnRequestSchema } from "../../src/gen/heeler/v1/index.js";
import type * as v1 from "../../src/gen/heeler/v1/index.js";
import type {
  AttachOptions,
  CallOptions,
  CancelOptions,
  DetachOptions,
  EnvironmentOptions,
  ExclusiveOptions,
  Filter,
  ForegroundOptions,
  HeelerClient,
  InspectOptions,
  ListOptions,
  ReadOutputOptions,
  ShutdownOptions,
  SilenceOptions,
  SpawnOptions,
  StopOptions,
  UpdateQueueOptions,
  WaitOptions,
  WatchOptions,
} from "../../src/index.js";
import { type OptionName, toMessage } from "../../src/options/message.js";
import { reasonText } from "../../src/streams/reason.js";

/** The fields of a message that have no option. */
type Missing<M, O, Except extends string = never> = Exclude<
  OptionName<M>,
  (O extends unknown ? keyof O : never) | Except
>;

/** Does not compile if something is missing, and the error names it. */
type Complete<M extends never> = M;

type Methods = typeof v1.BackgroundTasks.method;

/** The options of each call, with the field that is the first parameter of its method. */
interface RequestOptions {
  readonly spawn: SpawnOptions & { readonly spec: unknown };
  readonly attach: AttachOptions & { readonly taskId: string };
  readonly detach: DetachOptions & { readonly filter: Filter };
  readonly cancel: CancelOptions & { readonly filter: Filter };
  readonly list: ListOptions;
  readonly inspect: InspectOptions & { readonly taskId: string };
  // `after` sets both.
  readonly watchEvents: WatchOptions & { readonly afterRevision: bigint; readonly epoch: string };
  readonly wait: WaitOptions & { readonly filter: Filter };
  readonly readOutput: ReadOutputOptions & { readonly taskId: string };
  readonly remove: CallOptions & { readonly filter: Filter };
  readonly updateQueue: UpdateQueueOptions & { readonly name: string };
  readonly listQueues: CallOptions;
  readonly shutdown: ShutdownOptions;
}

type MissingOf<N extends keyof Methods> = N extends keyof RequestOptions
  ? Missing<MessageShape<Methods[N]["input"]>, RequestOptions[N]>
  : N;

/** Every call has a method, and every field of a request an option. */
export type Checks = [
  Complete<Exclude<keyof Methods, keyof HeelerClient | "watchEvents">>,
  Complete<{ [N in keyof Methods]: MissingOf<N> }[keyof Methods]>,
  Complete<Missing<v1.TaskSpec, SpawnOptions>>,
  Complete<Missing<v1.TaskEnvironment, EnvironmentOptions, "variableNames">>,
  Complete<Missing<v1.StopPolicy, StopOptions>>,
  Complete<Missing<v1.ForegroundPolicy, ForegroundOptions>>,
  Complete<Missing<v1.SilencePolicy, SilenceOptions>>,
  Complete<Missing<v1.ExclusivePolicy, ExclusiveOptions>>,
  Complete<Missing<v1.TaskFilter, Filter>>,
];

test("options become fields: milliseconds, words, groups and choices", () => {
  const { spec } = toMessage(SpawnRequestSchema, {
    spec: {
      kind: "agent",
      argv: { args: ["true"] },
      environment: { variables: { A: "1" }, defaults: "nonInteractive" },
      foreground: { timeoutMs: 1500 },
      idleTimeoutMs: undefined,
    },
  });
  assert.equal(spec?.kind, 2);
  assert.deepEqual(spec.command.value, { $typeName: "heeler.v1.ArgvCommand", args: ["true"] });
  assert.equal(spec.environment?.defaults, 1);
  assert.deepEqual(spec.environment.variables, { A: "1" });
  assert.deepEqual([spec.foreground?.timeout?.seconds, spec.foreground?.timeout?.nanos], [1n, 5e8]);
  assert.equal(spec.idleTimeout, undefined);
  assert.equal(spec.silence, undefined, "a group that is absent is not asked for");
  assert.equal(toMessage(CancelRequestSchema, { force: true }).how.case, "force");
  assert.equal(toMessage(CancelRequestSchema, { force: false }).how.case, undefined);
});

test("options that cannot be sent are refused by name", () => {
  const refused = (spec: object, message: RegExp): void => {
    assert.throws(() => toMessage(SpawnRequestSchema, { spec }), message);
  };
  refused({ foreground: { onTimeout: "keep" } }, /foreground.onTimeout must be one of detach, ca/u);
  refused(
    { kind: "unspecified" },
    /^TypeError: kind must be one of shell, agent, not unspecified/u,
  );
  refused({ placement: "foreground" }, /there is no option placement/u);
  refused({ foreground: true }, /TypeError: foreground must be an object, not true/u);
  refused({ timeoutMs: NaN }, /TypeError: timeoutMs must be a number/u);
  const both = { graceful: {}, force: true };
  assert.throws(() => toMessage(CancelRequestSchema, both), /either graceful or force, not both/u);
});

/** T3 */
test("a duration beyond the longest becomes the longest, and a value that is not a number is refused", () => {
  assert.equal(toDuration("x", Infinity).seconds, 315_576_000_000n);
  assert.equal(toDuration("x", 1500.5).nanos, 500_500_000);
  assert.equal(toDuration("x", -1500).seconds, -1n, "the daemon refuses it");
  assert.throws(() => toDuration("graceMs", NaN), /graceMs must be a number/u);
});

/** F13 */
test("a reason is the message of an error, or a string as it is, up to 4 KiB", () => {
  assert.equal(reasonText(new Error("enough")), "enough");
  assert.equal(reasonText("enough"), "enough");
  assert.equal(reasonText(new TypeError("")), "TypeError");
  assert.equal(reasonText({ code: 7 }), "{ code: 7 }");
  assert.match(reasonText(AbortSignal.abort().reason), /aborted/u);
  const cut = reasonText(`x${"\u20AC".repeat(2000)}`);
  assert.equal(cut, `x${"\u20AC".repeat(1365)}`, "a character is not cut in two");
});
