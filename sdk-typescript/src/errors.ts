/**
 * The errors of this package: classes with a `kind` to switch on. connection/failure.ts converts errors
 * of the transport into them.
 */
import type { BackgroundTask } from "./answers.js";
import type { ErrorReason, WorkCancel } from "./gen/heeler/v1/index.js";

/** The reasons in the contract. A newer daemon may send others. */
export type Reason = Exclude<keyof typeof ErrorReason, "UNSPECIFIED">;

/** The gRPC status codes. */
export type StatusCode =
  | "CANCELLED"
  | "UNKNOWN"
  | "INVALID_ARGUMENT"
  | "DEADLINE_EXCEEDED"
  | "NOT_FOUND"
  | "ALREADY_EXISTS"
  | "PERMISSION_DENIED"
  | "RESOURCE_EXHAUSTED"
  | "FAILED_PRECONDITION"
  | "ABORTED"
  | "OUT_OF_RANGE"
  | "UNIMPLEMENTED"
  | "INTERNAL"
  | "UNAVAILABLE"
  | "DATA_LOSS"
  | "UNAUTHENTICATED";

/** A bad field of a request. */
export interface FieldViolation {
  /** Its path in the contract, such as `spec.stop.grace`. */
  readonly field: string;
  /** The option of this package that sets it, such as `stop.graceMs`. */
  readonly option: string;
  readonly description: string;
}

/** The base of every error. An aborted call rejects with its signal's reason instead. */
export abstract class HeelerError extends Error {
  abstract readonly kind:
    | "address"
    | "credentials"
    | "notRunning"
    | "daemonStart"
    | "notInstalled"
    | "survived"
    | "unreachable"
    | "disconnected"
    | "refused"
    | "deadline"
    | "protocol"
    | "cancelled"
    | "closed";

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }

  /** True if the daemon cannot have received the call and may be available a moment later. */
  readonly wasNotReceived: boolean = false;

  /** True if the same call may succeed a moment later: the daemon is away or restarting. */
  get isTransient(): boolean {
    return this.wasNotReceived;
  }

  /** True for a refusal with this reason. */
  is(reason: Reason): boolean {
    return this instanceof RefusedError && this.reason === reason;
  }
}

/** The problem with an address. */
export type AddressProblem =
  | "UNKNOWN_SCHEME"
  | "NO_HOST_AND_PORT"
  | "NOT_LOOPBACK"
  | "RELATIVE_PATH"
  | "PATH_TOO_LONG"
  | "NUL"
  | "NOT_PRIVATE"
  | "NO_DEFAULT";

/** The address cannot be used. */
export class AddressError extends HeelerError {
  readonly kind = "address";

  constructor(
    readonly problem: AddressProblem,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The token or the certificate authority cannot be used. */
export class CredentialsError extends HeelerError {
  readonly kind = "credentials";
}

/** No daemon listens at the address. */
export class NotRunningError extends HeelerError {
  readonly kind = "notRunning";
  override readonly wasNotReceived = true;

  constructor(
    readonly address: string,
    /** The command that starts a daemon at the address. */
    readonly startCommand: string,
    options?: ErrorOptions,
  ) {
    super(`no daemon answers at ${address}: start one with \`${startCommand}\``, options);
  }
}

/** `heeler start` failed. */
export class DaemonStartError extends HeelerError {
  readonly kind: "daemonStart" | "notInstalled" = "daemonStart";

  constructor(
    /** The program that was run or looked for. */
    readonly program: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The daemon cannot be started: there is no program `heeler` that can be executed. */
export class NotInstalledError extends DaemonStartError {
  override readonly kind = "notInstalled";

  constructor(program: string, origin: string, problem: string, options?: ErrorOptions) {
    super(
      program,
      `cannot start the daemon: cannot execute \`${program}\` (from ${origin}): ${problem}; ` +
        "install it with `cargo install --path cli` in a checkout of Heeler, " +
        "or set HEELER_BINARY to its path",
      options,
    );
  }
}

/** A task was killed for 10 s and some of its processes still exist. The kill goes on. */
export class SurvivedError extends HeelerError {
  readonly kind = "survived";

  constructor(
    /** The task; the proof of its stop names the survivors. */
    readonly task: BackgroundTask,
  ) {
    super(`${task.id} was killed, but some of its processes still exist; the kill goes on`);
  }
}

/** The connection could not be opened, for example for lack of permission. */
export class UnreachableError extends HeelerError {
  readonly kind = "unreachable";
  override readonly wasNotReceived: boolean;

  constructor(
    readonly address: string,
    /** The system's error code, such as `EACCES`. */
    readonly code: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(`cannot connect to ${address}: ${message}`, options);
    this.wasNotReceived = PASSING.has(code);
  }
}

/** The failures to connect that end by themselves: those of the network, and of a daemon at its limit. */
const PASSING: ReadonlySet<string> = new Set([
  // The daemon's queue of connections is full.
  "EAGAIN",
  // The daemon, or a machine between, has died with the connection.
  "ECONNABORTED",
  "ECONNRESET",
  "EPIPE",
  // The host, or the way to it.
  "EHOSTDOWN",
  "EHOSTUNREACH",
  "ENETDOWN",
  "ENETRESET",
  "ENETUNREACH",
  "ETIMEDOUT",
  // This machine, while its network changes: it has no address, or no server of names.
  "EADDRNOTAVAIL",
  "EAI_AGAIN",
  "ENOTFOUND",
]);

/** The connection broke. The daemon may have received the call. */
export class DisconnectedError extends HeelerError {
  readonly kind = "disconnected";

  constructor(
    readonly address: string,
    options?: ErrorOptions,
  ) {
    super(`the connection to ${address} broke`, options);
  }

  override get isTransient(): boolean {
    return true;
  }
}

/** The content of a refusal. */
export interface Refusal {
  readonly code: StatusCode;
  readonly reason?: string | undefined;
  readonly message: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly fields: readonly FieldViolation[];
}

/** The daemon refused the call and changed nothing. */
export class RefusedError extends HeelerError {
  readonly kind = "refused";
  readonly code: StatusCode;
  /** A {@link Reason} or a newer one. Undefined if the status does not come from Heeler itself. */
  readonly reason: string | undefined;
  /** The values that belong to the reason. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The bad fields of the request. */
  readonly fields: readonly FieldViolation[];
  override readonly wasNotReceived: boolean;

  constructor(refusal: Refusal, options?: ErrorOptions) {
    super(refusal.message, options);
    this.code = refusal.code;
    this.reason = refusal.reason;
    this.metadata = refusal.metadata;
    this.fields = refusal.fields;
    this.wasNotReceived = refusal.code === "UNAVAILABLE";
  }
}

/** The call's own deadline passed. This ended no task. */
export class DeadlineError extends HeelerError {
  readonly kind = "deadline";

  constructor(
    readonly deadlineMs: number,
    options?: ErrorOptions,
  ) {
    super(`no answer within ${deadlineMs.toString()} ms`, options);
  }
}

/** The request or the answer does not conform to the contract. */
export class ProtocolError extends HeelerError {
  readonly kind = "protocol";
}

/** The task of a worker is to stop, or has ended. It is the reason of the worker's signals. */
export class CancelledError extends HeelerError {
  readonly kind = "cancelled";

  constructor(
    readonly taskId: string,
    /** The request to stop. Undefined if the task has ended without one. */
    readonly request: WorkCancel | undefined,
    options?: ErrorOptions,
  ) {
    const reason = request?.reason ? `: ${request.reason}` : "";
    super(`${taskId} ${request === undefined ? "has ended" : `is to stop${reason}`}`, options);
  }
}

/** The client was closed before or during the call. */
export class ClosedError extends HeelerError {
  readonly kind = "closed";
}
