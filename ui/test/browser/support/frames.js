/**
 * The messages of a stream of the Connect protocol, to its end. An end with an error throws it.
 * @param {AsyncIterable<Uint8Array>} body
 * @returns {AsyncGenerator<any>}
 */
export async function* frames(body) {
  let rest = Buffer.alloc(0);
  for await (const bytes of body) {
    rest = Buffer.concat([rest, bytes]);
    while (rest.length >= 5) {
      const end = 5 + rest.readUInt32BE(1);
      if (rest.length < end) break;
      const message = JSON.parse(rest.toString("utf8", 5, end));
      if ((rest[0] ?? 0) & 2) {
        if (message.error) throw new Error(message.error.message);
        return;
      }
      yield message;
      rest = rest.subarray(end);
    }
  }
  throw new Error("the stream broke");
}
