// The token of the page, which its address brought.

const KEY = "heeler-token";

/** Keeps the token in the session storage of the tab; in memory if that is not allowed. */
export class Token {
  #text = "";

  constructor() {
    try {
      this.#text = sessionStorage.getItem(KEY) ?? "";
    } catch {
      // Storage is off: the token lasts as long as the page.
    }
  }

  get text() {
    return this.#text;
  }

  /** @param {string} text */
  set(text) {
    // A header cannot have other characters, and no token has.
    this.#text = text.replace(/[^\x21-\x7e]/g, "");
    try {
      sessionStorage.setItem(KEY, this.#text);
    } catch {
      // As above.
    }
  }
}
