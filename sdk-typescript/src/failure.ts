/** Turns what the transport throws into this package's errors. */
import { Code, ConnectError } from "@connectrpc/connect";

import { type Address, formatAddress, startCommand } from "./address.js";
import {
  DisconnectedError,
  HeelerError,
  NotRunningError,
  ProtocolError,
  type Refusal,
  RefusedError,
  type StatusCode,
  UnreachableError,
} from "./errors.js";
import { BadRequestSchema, ErrorInfoSchema } from "./gen/google/rpc/error_details_pb.js";

/** Whose reasons are ours. */
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

/** Reads the failure of a call to this address. */
export function toHeelerError(thrown: unknown, address: Address): HeelerError {
  if (thrown instanceof HeelerError) {
    return thrown;
  }
  const error = ConnectError.from(thrown, Code.Internal);
  // Only a status that was sent has this; whatever went wrong on this side has not.
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

/** Whether asking again, later, would be answered the same. */
export function isFinal(error: HeelerError): boolean {
  switch (error.kind) {
    case "refused":
      return FINAL.has((error as RefusedError).code);
    case "notRunning":
    case "disconnected":
      return false;
    case "unreachable":
      return !error.isUnheard;
    case "address":
    case "credentials":
    case "deadline":
    case "protocol":
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
    .map(({ field, description }) => ({ field, description }));
  const code = CODES[error.code];
  const [first] = fields;
  const spoken = first === undefined ? code : `${first.field}: ${first.description}`;
  return {
    code,
    reason: info?.reason,
    message: error.rawMessage === "" ? spoken : error.rawMessage,
    metadata: { ...info?.metadata },
    fields,
  };
}

interface SystemError extends Error {
  readonly code: string;
  readonly syscall?: string;
}

/** What Node says lies under this error. */
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

/** A stream that HTTP/2 or the transport cut off, with no word from the daemon. */
function isBroken(error: ConnectError): boolean {
  return (
    error.code === Code.Canceled ||
    error.code === Code.Aborted ||
    error.code === Code.Unavailable ||
    error.rawMessage.startsWith("http/2")
  );
}
