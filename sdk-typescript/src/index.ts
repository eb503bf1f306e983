/**
 * The TypeScript client of Heeler: it starts, watches, inspects and stops background tasks through the
 * daemon of the calling user.
 *
 * A call that finds the daemon restarting is tried again, with growing and jittered delays, for up to
 * five seconds (`retryForMs`). That is safe for every call: reading has no effect; Cancel, Detach, Wait
 * and UpdateQueue mean the same when asked twice; and Spawn carries a fresh `requestId` by which the
 * daemon knows it again. Remove is repeated only while it cannot have been heard, Shutdown not at all.
 */
export type { AttachItem, AttachOptions, Release } from "./attach.js";
export type { CallOptions } from "./call.js";
export type { CancelOptions, CancelTarget } from "./cancel.js";
export {
  type ConnectOptions,
  HeelerClient,
  type RemoveTarget,
  type ShutdownOptions,
} from "./client.js";
export type { Credentials } from "./credentials.js";
export type { WatchItem } from "./cursor.js";
export type { DetachOptions, DetachTarget } from "./detach.js";
export {
  AddressError,
  type AddressProblem,
  ClosedError,
  CredentialsError,
  DeadlineError,
  DisconnectedError,
  type FieldViolation,
  HeelerError,
  NotRunningError,
  ProtocolError,
  type Reason,
  type Refusal,
  RefusedError,
  type StatusCode,
  UnreachableError,
} from "./errors.js";
export type { Filter } from "./filter.js";
export * from "./gen/heeler/v1/background_tasks_pb.js";
export * from "./gen/heeler/v1/error_pb.js";
export * from "./gen/heeler/v1/event_pb.js";
export * from "./gen/heeler/v1/output_pb.js";
export * from "./gen/heeler/v1/process_pb.js";
export * from "./gen/heeler/v1/task_pb.js";
export type { Line, LineOptions } from "./lines.js";
export type { ListOptions } from "./list.js";
export type {
  Chunk,
  OutputOptions,
  OutputStart,
  ReadOutputOptions,
  ViewOptions,
} from "./output.js";
export type { QueueOptions } from "./queue.js";
export type { ResumeOptions } from "./resume.js";
export type { ForegroundOptions, RuleOptions } from "./rules.js";
export type { RunItem, RunOptions, RunResult, RunStreamOptions } from "./run.js";
export type { ArgvOptions, ShellOptions, SpawnOptions, TaskOptions } from "./spawn.js";
export { exitCode, Task } from "./task.js";
export type { Stub } from "./transport.js";
export type { UntilOptions, WaitOptions, WaitTarget } from "./wait.js";
export type { WatchOptions } from "./watch.js";
