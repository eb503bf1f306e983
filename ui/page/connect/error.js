// A refused or failed call.

/** The codes after which the same call may succeed later. */
const PASSING = new Set(["unavailable", "aborted", "deadline_exceeded", "canceled"]);

/** @typedef {{type?: string, debug?: {reason?: string, metadata?: Record<string, string>, fieldViolations?: {field?: string}[]}}} Detail */
/** @typedef {{code?: string, message?: string, details?: Detail[]}} ErrorJson */

export class CallError extends Error {
  /**
   * @param {string} code
   * @param {string} message
   * @param {Detail[]} details
   */
  constructor(code, message, details = []) {
    super(message || code);
    this.name = "CallError";
    this.code = code;
    const info = find(details, "google.rpc.ErrorInfo");
    /** An ErrorReason without its prefix. Empty: none. */
    this.reason = info?.reason ?? "";
    this.metadata = info?.metadata ?? {};
    this.field = find(details, "google.rpc.BadRequest")?.fieldViolations?.[0]?.field ?? "";
  }

  /** True if the server cannot be reached, or is starting or ending. */
  get isPassing() {
    return (
      PASSING.has(this.code) ||
      (this.code === "resource_exhausted" && this.reason === "TOO_MANY_CALLS")
    );
  }

  /** @param {...string} reasons */
  is(...reasons) {
    return reasons.includes(this.reason);
  }

  /**
   * An error in the form of the Connect protocol.
   * @param {unknown} json
   * @param {number} status The HTTP status, for an answer that has no such form
   */
  static from(json, status) {
    const error = /** @type {ErrorJson} */ (json && typeof json === "object" ? json : {});
    const code = error.code ?? (status >= 500 ? "unavailable" : "unknown");
    return new CallError(code, error.message ?? `HTTP status ${status}`, error.details);
  }

  /**
   * Any thrown value as an error of a call: a failed fetch, an abort or a timeout.
   * @param {unknown} thrown
   */
  static of(thrown) {
    if (thrown instanceof CallError) return thrown;
    const { name, message } =
      thrown instanceof Error ? thrown : { name: "", message: String(thrown) };
    if (name === "AbortError") return new CallError("canceled", "the call was ended");
    if (name === "TimeoutError")
      return new CallError("deadline_exceeded", "the server did not answer in time");
    if (name === "SyntaxError")
      return new CallError("internal", `the answer cannot be read: ${message}`);
    return new CallError("unavailable", "the server cannot be reached");
  }
}

/**
 * @param {Detail[]} details
 * @param {string} type
 */
function find(details, type) {
  return details.find((detail) => detail.type === type)?.debug;
}

/**
 * The present state of a signal. The type checker does not know that it changes during a call.
 * @param {AbortSignal} signal
 */
export const isAborted = (signal) => signal.aborted;
