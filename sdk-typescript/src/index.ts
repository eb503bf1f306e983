/**
 * The TypeScript client of Heeler: it starts, watches, inspects and stops background tasks through the
 * daemon of the calling user.
 *
 * Requests are built from options: durations are milliseconds, enum values are words. Answers are the
 * contract's messages; `JSON.stringify` writes them in protobuf's JSON. The messages and enums that
 * programs need are exported here. The generated module is another entry, `@heeler/client/v1`, for
 * programs that call `client.raw`.
 *
 * A call that finds the daemon restarting is repeated, with growing and jittered delays, for up to five
 * seconds (`retryForMs`). This is safe for every call: reading has no effect; Cancel, Detach, Wait,
 * UpdateTask and UpdateQueue have the same effect when repeated; and Spawn carries a new `requestId` by which the daemon
 * recognises it. Remove is repeated only if the daemon cannot have received it, Shutdown never.
 */
export type {
  BackgroundTask,
  CancelResult,
  DetachResult,
  InspectResponse,
  ListResponse,
  SpawnResponse,
  TaskEvent,
  WaitResponse,
} from "./answers.js";
export { type ConnectOptions, type ConnectOrStartOptions, HeelerClient } from "./client.js";
export type { CallOptions } from "./connection/call.js";
export type { Credentials } from "./connection/credentials.js";
export { toDate, toMilliseconds } from "./connection/time.js";
export type { Stub } from "./connection/transport.js";
export {
  AddressError,
  type AddressProblem,
  CancelledError,
  ClosedError,
  CredentialsError,
  DaemonStartError,
  DeadlineError,
  DisconnectedError,
  type FieldViolation,
  HeelerError,
  NotInstalledError,
  NotRunningError,
  ProtocolError,
  type Reason,
  type Refusal,
  RefusedError,
  type StatusCode,
  SurvivedError,
  UnreachableError,
} from "./errors.js";
export {
  AttachEndReason,
  type Block,
  BlockKind,
  type Bookmark,
  CancelOutcome,
  Containment,
  DetachCause,
  DetachOutcome,
  EndReason,
  type ListSessionsResponse,
  type MatchedLine,
  type Outcome,
  OutputGapCause,
  type OutputMatch,
  OutputStream,
  Placement,
  type Progress,
  ProofMethod,
  type Queue,
  type ReadOutputResponse,
  type RemoveResponse,
  type SessionActivity,
  type SessionInfo,
  type ShutdownResponse,
  type SpawnNotice,
  SpawnNoticeType,
  SpawnStage,
  TaskEventType,
  TaskKind,
  TaskRights,
  type TaskMessage,
  type TaskSpec,
  TaskState,
  type Unrecorded,
  type WorkCancel,
  WorkCancelMode,
  type WorkerResult,
  WorkerStatus,
  type WorkRequest,
  type WorkResponse,
} from "./gen/heeler/v1/index.js";
export type { Filter } from "./options/filter.js";
export type {
  HeadAndTailOptions,
  OutputFilterOptions,
  OutputStart,
  PatternOptions,
  SearchOptions,
  TailStart,
  UpdateTaskOptions,
  ViewOptions,
} from "./options/output.js";
export type {
  BlockOptions,
  CancelOptions,
  DetachOptions,
  InspectOptions,
  ListOptions,
  ListSessionsOptions,
  ProgressOptions,
  ReportProgressOptions,
  RequesterOptions,
  ResizeTerminalOptions,
  SendMessageOptions,
  ShutdownOptions,
  UntilOptions,
  UpdateQueueOptions,
  WaitOptions,
  WriteInputOptions,
} from "./options/requests.js";
export type {
  ArgvOptions,
  EnvironmentOptions,
  ExclusiveOptions,
  ForegroundOptions,
  OutputPolicyOptions,
  ShellOptions,
  InputOptions,
  ReadyOptions,
  RestartOptions,
  SilenceOptions,
  SpawnOptions,
  StopOptions,
  TaskOptions,
  TerminalOptions,
} from "./options/spec.js";
export {
  type InSession,
  Session,
  type SessionCancelOptions,
  type SessionCounts,
  type SessionFilter,
} from "./session.js";
export type { AttachEnd, AttachItem, AttachOptions } from "./streams/attach.js";
export type { WatchItem } from "./streams/cursor.js";
export type { FollowOptions, OutputCursorOptions } from "./streams/follow.js";
export type { FollowItem } from "./streams/follow-cursor.js";
export { type InputStreamOptions, TaskInput } from "./streams/input.js";
export type { Line, LineOptions } from "./streams/lines.js";
export type { Chunk, Gap, OutputOptions, ReadOutputOptions } from "./streams/output.js";
export type { ResumeOptions } from "./streams/resume.js";
export type { RunItem, RunOptions, RunResult, RunStart, RunStreamOptions } from "./streams/run.js";
export type { Stream } from "./streams/stream.js";
export type { SessionOwnershipOptions, WatchOptions } from "./streams/watch.js";
export { Task } from "./task.js";
export type { Body, HostedOptions, HostOptions, JoinOptions } from "./work/host.js";
export type { Reporter } from "./work/progress.js";
export type { BodyResult, ResultOptions } from "./work/result.js";
export { Work } from "./work/work.js";
