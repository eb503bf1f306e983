import assert from "node:assert/strict";
import { test } from "node:test";

import type { MessageShape } from "@bufbuild/protobuf";

import { toDuration } from "../../src/connection/time.js";
import {
  CancelRequestSchema,
  ReadOutputRequestSchema,
  ReportProgressRequestSchema,
  SpawnRequestSchema,
  UpdateTaskRequestSchema,
} from "../../src/gen/heeler/v1/index.js";
import type * as v1 from "../../src/gen/heeler/v1/index.js";
import type {
  AttachOptions,
  BlockOptions,
  CallOptions,
  CancelOptions,
  DetachOptions,
  EnvironmentOptions,
  ExclusiveOptions,
  Filter,
  FollowOptions,
  ForegroundOptions,
  HeadAndTailOptions,
  HeelerClient,
  InputOptions,
  InspectOptions,
  ListOptions,
  ListSessionsOptions,
  OutputCursorOptions,
  OutputFilterOptions,
  OutputPolicyOptions,
  PatternOptions,
  ProgressOptions,
  ReadOutputOptions,
  ReadyOptions,
  ReportProgressOptions,
  ResizeTerminalOptions,
  RestartOptions,
  SearchOptions,
  SendMessageOptions,
  ShutdownOptions,
  SilenceOptions,
  SpawnOptions,
  StopOptions,
  TerminalOptions,
  UpdateQueueOptions,
  UpdateTaskOptions,
  WaitOptions,
  WatchOptions,
  WriteInputOptions,
} from "../../src/index.js";
import { type OptionName, toMessage } from "../../src/options/message.js";
import { optionOf } from "../../src/options/names.js";
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
  // `after` sets both.
  readonly followOutput: FollowOptions & { readonly afterRevision: bigint; readonly epoch: string };
  readonly writeInput: WriteInputOptions & { readonly taskId: string };
  readonly resizeTerminal: ResizeTerminalOptions & { readonly taskId: string };
  readonly updateTask: UpdateTaskOptions & { readonly taskId: string };
  // Its requests are the contract's own messages.
  readonly work: Readonly<Record<OptionName<v1.WorkRequest>, unknown>>;
  readonly reportProgress: ReportProgressOptions & { readonly taskId: string };
  readonly sendMessage: SendMessageOptions & { readonly taskId: string };
  readonly remove: CallOptions & { readonly filter: Filter };
  readonly updateQueue: UpdateQueueOptions & { readonly name: string };
  readonly listQueues: CallOptions;
  readonly listSessions: ListSessionsOptions;
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
  Complete<Missing<v1.InputPolicy, InputOptions>>,
  Complete<Missing<v1.TerminalPolicy, TerminalOptions>>,
  Complete<Missing<v1.ReadyPolicy, ReadyOptions>>,
  Complete<Missing<v1.RestartPolicy, RestartOptions>>,
  Complete<Missing<v1.TaskFilter, Filter>>,
  Complete<Missing<v1.OutputPolicy, OutputPolicyOptions>>,
  Complete<Missing<v1.OutputPattern, PatternOptions>>,
  Complete<Missing<v1.OutputFilter, OutputFilterOptions>>,
  Complete<Missing<v1.HeadAndTail, HeadAndTailOptions>>,
  Complete<Missing<v1.OutputSearch, SearchOptions>>,
  Complete<Missing<v1.OutputCursor, OutputCursorOptions>>,
  Complete<Missing<v1.ProgressUpdate, ProgressOptions>>,
  Complete<Missing<v1.Block, BlockOptions, "number" | "blockTime">>,
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

test("lists of groups and maps of numbers become fields", () => {
  const { update } = toMessage(ReportProgressRequestSchema, {
    taskId: "t",
    update: { blocks: [{ kind: "toolCall", text: "ls" }], counts: { tokens: 7 } },
  });
  assert.equal(update?.blocks[0]?.kind, 3);
  assert.equal(update.counts["tokens"], 7n);
  assert.throws(
    () => toMessage(ReportProgressRequestSchema, { update: { blocks: [{ mood: 1 }] } }),
    /there is no option update.blocks\[0\].mood/u,
  );
});

test("options that cannot be sent are refused by name", () => {
  const refused = (spec: object, message: RegExp): void => {
    assert.throws(() => toMessage(SpawnRequestSchema, { spec }), message);
  };
  refused({ foreground: { onTimeout: "keep" } }, /foreground.onTimeout must be one of detach, ca/u);
  refused(
    { kind: "unspecified" },
    /^TypeError: kind must be one of shell, agent, hosted, not unspecified/u,
  );
  refused({ placement: "foreground" }, /there is no option placement/u);
  refused({ foreground: true }, /TypeError: foreground must be an object, not true/u);
  refused({ timeoutMs: NaN }, /TypeError: timeoutMs must be a number/u);
  const both = { graceful: {}, force: true };
  assert.throws(() => toMessage(CancelRequestSchema, both), /either graceful or force, not both/u);
});

/** O13, O16 */
test("options become fields: times, parts of output and lists of patterns", () => {
  const setPatterns = [{ name: "errors", regex: "^error", stream: "stderr", cooldownMs: 500 }];
  const [pattern] = toMessage(UpdateTaskRequestSchema, { setPatterns }).setPatterns;
  assert.deepEqual([pattern?.name, pattern?.stream], ["errors", 2]);
  assert.equal(pattern?.cooldown?.nanos, 5e8);
  const since = new Date(1500);
  const { start } = toMessage(ReadOutputRequestSchema, { since });
  assert(start.case === "since");
  assert.deepEqual([start.value.seconds, start.value.nanos], [1n, 5e8]);
  const again = toMessage(ReadOutputRequestSchema, { since: start.value });
  assert.deepEqual(again.start, start, "a time of an answer is a time of a request");
  const headAndTail = { headLines: 2, tailBytes: 7 };
  const both = toMessage(ReadOutputRequestSchema, { headAndTail }).start;
  assert(both.case === "headAndTail");
  assert.deepEqual([both.value.head.case, both.value.tail.case], ["headLines", "tailBytes"]);
  const refused = (options: object, message: RegExp): void => {
    assert.throws(() => toMessage(ReadOutputRequestSchema, options), message);
  };
  refused({ since: new Date(NaN) }, /since must be a Date or a timestamp, not Invalid Date/u);
  refused({ since: "yesterday" }, /since must be a Date or a timestamp, not yesterday/u);
  refused({ since, tailLines: 1 }, /give either tailLines or since, not both/u);
  const colour = { setPatterns: [{ ...setPatterns[0], stream: "stdin" }] };
  assert.throws(
    () => toMessage(UpdateTaskRequestSchema, colour),
    /setPatterns\[0\].stream must be one of stdout, stderr, not stdin/u,
  );
});

/** S2 */
test("a bad field is named as its option, with its indexes", () => {
  const names = {
    "spec.output.patterns[2].cooldown": "output.patterns[2].cooldownMs",
    "spec.output.max_bytes": "output.maxBytes",
    'spec.labels["a[0].b"]': 'labels["a[0].b"]',
    "set_patterns[0].regex": "setPatterns[0].regex",
    "remove_patterns[1]": "removePatterns[1]",
    "cursors[0].task_id": "cursors[0].taskId",
    "output_filter.lines_before": "outputFilter.linesBefore",
    "filter.include": "filter.include",
    "filter.task_ids[1]": "filter.taskIds[1]",
    "head_and_tail.tail_lines": "headAndTail.tailLines",
    "match.regex": "match.regex",
    max_lines: "maxLines",
    wait: "waitMs",
  };
  for (const [field, option] of Object.entries(names)) {
    assert.equal(optionOf(field), option);
  }
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
