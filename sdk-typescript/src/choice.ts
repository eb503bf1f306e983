/** Options that are one of a few words. A wrong one would otherwise be sent as the default. */
export function choose<T>(field: string, choices: Readonly<Record<string, T>>, word: string): T {
  const chosen = Object.hasOwn(choices, word) ? choices[word] : undefined;
  if (chosen === undefined) {
    throw new TypeError(`${field} must be one of ${Object.keys(choices).join(", ")}, not ${word}`);
  }
  return chosen;
}
