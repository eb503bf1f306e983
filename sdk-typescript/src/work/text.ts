/** Texts of a worker, within the limits of the contract. A value beyond a limit would end its stream. */

/** A text that is cut at the end of a character, with its length in bytes before. */
export interface Cut {
  readonly text: string;
  readonly bytes: number;
}

/** Cuts a text to a number of bytes. */
export function cut(option: string, text: unknown, maxBytes: number): Cut {
  const bytes = Buffer.from(checkText(option, text));
  // With `stream`, a character that the cut has split is dropped.
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const kept = decoder.decode(bytes.subarray(0, maxBytes), { stream: true });
  return { text: kept, bytes: bytes.length };
}

/** Refuses a text that is too long, by the option's name. */
export function limited(option: string, text: unknown, maxBytes: number): string {
  const checked = checkText(option, text);
  checkLength(option, Buffer.byteLength(checked), maxBytes);
  return checked;
}

export function checkLength(option: string, bytes: number, maxBytes: number): void {
  if (bytes > maxBytes) {
    throw new RangeError(
      `${option} has ${bytes.toString()} bytes, more than ${maxBytes.toString()}`,
    );
  }
}

function checkText(option: string, text: unknown): string {
  if (typeof text !== "string") {
    throw new TypeError(`${option} must be a string, not ${String(text)}`);
  }
  return text;
}
