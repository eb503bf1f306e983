/**
 * What can go wrong with a call, as classes with a `kind` to switch on. How a failure of the transport
 * becomes one of them is in failure.ts.
 */
import type { ErrorReason } from "./gen/heeler/v1/error_pb.js";

/** The reasons of the contract, by name. A newer daemon may send others. */
export type Reason = Exclude<keyof typeof ErrorReason, "UNSPECIFIED">;

/** The gRPC status codes, by name. */
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

/** A field of a request that cannot be used. */
export interface FieldViolation {
  /** Its path in the request, e.g. `stop_policy.grace`. */
  readonly field: string;
  /** What is wrong with it. */
  readonly description: string;
}

/** What every error of this package is. An aborted call rejects with its signal's reason instead. */
export abstract class HeelerError extends Error {
  /** Which of them it is. */
  abstract readonly kind:
    | "address"
    | "credentials"
    | "notRunning"
    | "unreachable"
    | "disconnected"
    | "refused"
    | "deadline"
    | "protocol"
    | "closed";

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }

  /** Whether the daemon cannot have begun to carry out the call, and may do so a moment later. */
  readonly isUnheard: boolean = false;

  /** Whether the same call may succeed a moment later: the daemon is away or restarting. */
  get isTransient(): boolean {
    return this.isUnheard;
  }

  /** Whether it is a refusal for this reason. */
  is(reason: Reason): boolean {
    return this instanceof RefusedError && this.reason === reason;
  }
}

/** Why an address cannot be used. */
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

/** The token or the authority for a daemon over TCP cannot be used. */
export class CredentialsError extends HeelerError {
  readonly kind = "credentials";
}

/** Nobody listens there. */
export class NotRunningError extends HeelerError {
  readonly kind = "notRunning";
  override readonly isUnheard = true;

  constructor(
    /** Where the daemon was sought. */
    readonly address: string,
    /** The command that starts one there. */
    readonly startCommand: string,
    options?: ErrorOptions,
  ) {
    super(`no daemon answers at ${address}: start one with \`${startCommand}\``, options);
  }
}

/** Somebody may listen there, but we cannot reach them. */
export class UnreachableError extends HeelerError {
  readonly kind = "unreachable";
  /** The kernel says so at once when the daemon's queue of connections is full. */
  override readonly isUnheard: boolean;

  constructor(
    readonly address: string,
    /** The system's name for the trouble, e.g. `EACCES`. */
    readonly code: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(`cannot connect to ${address}: ${message}`, options);
    this.isUnheard = code === "EAGAIN";
  }
}

/** The connection broke: whether the daemon heard the call is not known. */
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

/** What a refusal says. */
export interface Refusal {
  readonly code: StatusCode;
  readonly reason?: string | undefined;
  readonly message: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly fields: readonly FieldViolation[];
}

/** The daemon said no. Nothing was changed. */
export class RefusedError extends HeelerError {
  readonly kind = "refused";
  /** The gRPC status code. */
  readonly code: StatusCode;
  /** Why: a {@link Reason}, or a newer one. Absent if the status did not come from Heeler itself. */
  readonly reason: string | undefined;
  /** The values that the reason speaks of. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Which fields of the request cannot be used. */
  readonly fields: readonly FieldViolation[];
  override readonly isUnheard: boolean;

  constructor(refusal: Refusal, options?: ErrorOptions) {
    super(refusal.message, options);
    this.code = refusal.code;
    this.reason = refusal.reason;
    this.metadata = refusal.metadata;
    this.fields = refusal.fields;
    this.isUnheard = refusal.code === "UNAVAILABLE";
  }
}

/** The call's own deadline passed. No task was ended by it. */
export class DeadlineError extends HeelerError {
  readonly kind = "deadline";

  constructor(
    /** How long the call was given. */
    readonly deadlineMs: number,
    options?: ErrorOptions,
  ) {
    super(`no answer within ${deadlineMs.toString()} ms`, options);
  }
}

/** The request or the answer is not what the contract says. */
export class ProtocolError extends HeelerError {
  readonly kind = "protocol";
}

/** The client was closed before, or during, the call. */
export class ClosedError extends HeelerError {
  readonly kind = "closed";
}
