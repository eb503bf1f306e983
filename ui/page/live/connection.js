// The state of the connection to the server.

/** @typedef {"connecting" | "connected" | "reconnecting" | "refused"} ConnectionState */

export class Connection {
  /** @type {ConnectionState} */
  state = "connecting";
  /** The reason of a break or a refusal. */
  detail = "";
  /** True if the token is missing or wrong. */
  isUnauthenticated = false;

  /** @param {() => void} onChange */
  constructor(onChange) {
    this.onChange = onChange;
  }

  /**
   * @param {ConnectionState} state
   * @param {string} [detail]
   * @param {boolean} [isUnauthenticated]
   */
  set(state, detail = "", isUnauthenticated = false) {
    if (this.state === state && this.detail === detail) return;
    Object.assign(this, { state, detail, isUnauthenticated });
    this.onChange();
  }
}
