/** Converts errors of the transport into errors of this package. */
import { Code, ConnectError } from "@connectrpc/connect";

import { type Address, formatAddress, startCommand } from "./address.js";
import {
  DisconnectedError,
  type FieldViolation,
  HeelerError,
  NotRunningError,
  ProtocolError,
  type Refusal,
  RefusedError,
  type StatusCode,
  UnreachableError,
} from "../errors.js";
import { BadRequestSchema, ErrorInfoSchema } from "../gen/google/rpc/error_details_pb.js";
import { optionOf } from "../options/names.js";

/** The domain of Heeler's own reasons. */
const DOMAIN = "heeler.dev";

const CODES: Readonly<Record<Code, StatusCode>> = {
  [Code.Canceled]: "CANCELLED",
  [Code.Unknown]: "UNKNOWN",
  [Code.InvalidArgument]: "INVALID_ARGUMENT",
  [Code.DeadlineExceeded]: "DEADLINE_EXCEEDED",
  [Code.NotFound]: "NOT_FOUND",
  [Code.AlreadyExists]: "ALREADY_EXISTS",
  [Code.PermissionDenied]: "PERMISSION_DENIED",
  [Code.ResourceExhausted]: "RESOURCE_EXHAUSTED",
  [Code.FailedPrecondition]: "FAILED_PRECONDITION",
  [Code.Aborted]: "ABORTED",
  [Code.OutOfRange]: "OUT_OF_RANGE",
  [Code.Unimplemented]: "UNIMPLEMENTED",
  [Code.Internal]: "INTERNAL",
  [Code.Unavailable]: "UNAVAILABLE",
  [Code.DataLoss]: "DATA_LOSS",
  [Code.Unauthenticated]: "UNAUTHENTICATED",
};

/** Converts the failure of a call to an address. */
export function toHeelerError(thrown: unknown, address: Address): HeelerError {
  if (thrown instanceof HeelerError) {
    return thrown;
  }
  const error = ConnectError.from(thrown, Code.Internal);
  // Present only if the daemon sent a status. Errors on this side have none.
  if (error.metadata.has("grpc-status")) {
    return new RefusedError(refusal(error), { cause: error });
  }
  const system = systemError(error);
  if (system?.syscall === "connect") {
    return connectFailure(system, address);
  }
  if (system !== undefined || isBroken(error)) {
    return new DisconnectedError(formatAddress(address), { cause: error });
  }
  return new ProtocolError(error.rawMessage, { cause: error });
}

/** Returns a field that the contract promises. */
export function present<T>(field: string, value: T | undefined): T {
  if (value === undefined) {
    throw new ProtocolError(`the daemon's answer has no ${field}`);
  }
  return value;
}

/** True if the attempt had a connection. */
export function wasConnected({ kind }: HeelerError): boolean {
  return kind !== "notRunning" && kind !== "unreachable";
}

/**
 * True if a later attempt would fail in the same way. An address that was reached once is not: the network,
 * the permissions or the certificate may be mended.
 */
export function isFinal(error: HeelerError): boolean {
  switch (error.kind) {
    case "refused":
      return FINAL.has((error as RefusedError).code);
    case "notRunning":
    case "unreachable":
    case "disconnected":
      return false;
    case "address":
    case "credentials":
    case "daemonStart":
    case "notInstalled":
    case "survived":
    case "deadline":
    case "protocol":
    case "cancelled":
    case "closed":
      return true;
  }
}

const FINAL: ReadonlySet<StatusCode> = new Set([
  "INVALID_ARGUMENT",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "FAILED_PRECONDITION",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "UNAUTHENTICATED",
]);

function refusal(error: ConnectError): Refusal {
  const [info] = error.findDetails(ErrorInfoSchema).filter(({ domain }) => domain === DOMAIN);
  const fields = error
    .findDetails(BadRequestSchema)
    .flatMap((bad) => bad.fieldViolations)
    .map(({ field, description }) => ({ field, option: optionOf(field), description }));
  const code = CODES[error.code];
  return {
    code,
    reason: info?.reason,
    message: explain(error.rawMessage, fields[0]) || code,
    metadata: { ...info?.metadata },
    fields,
  };
}

/** The daemon's message, with the name of the option beside that of the bad field. */
function explain(message: string, bad: FieldViolation | undefined): string {
  if (bad === undefined) {
    return message;
  }
  const { field, option, description } = bad;
  const text = message === "" ? `${field}: ${description}` : message;
  return option === field || !text.startsWith(field)
    ? text
    : `${option} (${field})${text.slice(field.length)}`;
}

interface SystemError extends Error {
  readonly code: string;
  readonly syscall?: string;
}

/** The error of Node below this error. */
function systemError(error: Error): SystemError | undefined {
  for (let next: unknown = error; next instanceof Error; next = next.cause) {
    if ("code" in next && typeof next.code === "string") {
      return next as SystemError;
    }
  }
  return undefined;
}

function connectFailure(error: SystemError, address: Address): HeelerError {
  const where = formatAddress(address);
  if (error.code === "ENOENT" || error.code === "ECONNREFUSED") {
    return new NotRunningError(where, startCommand(address), { cause: error });
  }
  return new UnreachableError(where, error.code, error.message, { cause: error });
}

/** True if HTTP/2 or the transport ended the stream, and not the daemon. */
function isBroken(error: ConnectError): boolean {
  return (
    error.code === Code.Canceled ||
    error.code === Code.Aborted ||
    error.code === Code.Unavailable ||
    error.rawMessage.startsWith("http/2")
  );
}
