/** What the contract promises to be there. */
import { ProtocolError } from "./errors.js";

export function present<T>(field: string, value: T | undefined): T {
  if (value === undefined) {
    throw new ProtocolError(`the daemon's answer has no ${field}`);
  }
  return value;
}
