/**
 * Enum values as options give them: by a word, such as `cancel` for
 * `FOREGROUND_TIMEOUT_ACTION_CANCEL`.
 */
import type { DescEnum } from "@bufbuild/protobuf";

/** The words of a generated enum. UNSPECIFIED has none: an option that is absent means it. */
export type Word<E> = Exclude<CamelCase<keyof E & string>, "unspecified">;

type CamelCase<S extends string> = S extends `${infer Head}_${infer Tail}`
  ? `${Lowercase<Head>}${Capitalize<CamelCase<Tail>>}`
  : Lowercase<S>;

/** The word for a value. */
export function toWord(localName: string): string {
  return localName
    .toLowerCase()
    .replaceAll(/_(?<letter>.)/gu, (_, letter: string) => letter.toUpperCase());
}

/** The value for a word. Refuses any other word, which would be sent as the default. */
export function fromWord(option: string, type: DescEnum, word: unknown): number {
  const words = new Map(
    type.values
      .filter(({ number }) => number !== 0)
      .map(({ localName, number }) => [toWord(localName), number]),
  );
  return choose(option, words, word);
}

/** One of a few choices by its word. */
export function choose<T>(option: string, choices: ReadonlyMap<string, T>, word: unknown): T {
  const chosen = choices.get(word as string);
  if (chosen === undefined) {
    const words = [...choices.keys()].join(", ");
    throw new TypeError(`${option} must be one of ${words}, not ${String(word)}`);
  }
  return chosen;
}
