/** The reason of an abort as text. */
import { inspect } from "node:util";

/** Maximum length of a reason in the contract. A longer one would be refused, and nothing stopped. */
const MAX_BYTES = 4096;

/** The text of an abort's reason or of an error: its message, cut to what the contract accepts. */
export function reasonText(reason: unknown): string {
  const bytes = Buffer.from(describe(reason));
  // With `stream`, a character that the cut has split is dropped.
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return decoder.decode(bytes.subarray(0, MAX_BYTES), { stream: true });
}

function describe(reason: unknown): string {
  if (reason instanceof Error) {
    return reason.message.trim() === "" ? reason.name : reason.message;
  }
  return typeof reason === "string" ? reason : inspect(reason);
}
