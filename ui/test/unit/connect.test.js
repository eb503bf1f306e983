import assert from "node:assert/strict";
import test from "node:test";
import { Delays, pause } from "../../page/connect/delays.js";
import { CallError } from "../../page/connect/error.js";

test("delays double up to a limit and begin anew after a success", () => {
  const delays = new Delays(() => 1);
  assert.deepEqual(
    Array.from({ length: 7 }, () => delays.next()),
    [200, 400, 800, 1600, 3200, 5000, 5000],
  );
  delays.reset();
  assert.equal(delays.next(), 200);
  assert.equal(new Delays(() => 0).next(), 100);
});

test("a pause ends early when its signal is aborted", async () => {
  const abort = new AbortController();
  const paused = pause(60_000, abort.signal);
  abort.abort();
  await paused;
  await pause(60_000, abort.signal);
});

test("an error has the reason, the metadata and the field of its details", () => {
  const error = CallError.from(
    {
      code: "out_of_range",
      message: "too old",
      details: [
        {
          type: "google.rpc.ErrorInfo",
          debug: { reason: "REVISION_OUT_OF_RANGE", metadata: { oldest: "7" } },
        },
        {
          type: "google.rpc.BadRequest",
          debug: { fieldViolations: [{ field: "after_revision" }] },
        },
      ],
    },
    400,
  );
  assert.equal(error.message, "too old");
  assert.equal(error.is("EPOCH_MISMATCH", "REVISION_OUT_OF_RANGE"), true);
  assert.equal(error.metadata["oldest"], "7");
  assert.equal(error.field, "after_revision");
  assert.equal(error.isPassing, false);
});

test("a server that is away is a passing failure, a refusal is not", () => {
  assert.equal(CallError.of(new TypeError("Failed to fetch")).isPassing, true);
  assert.equal(CallError.of(new DOMException("", "TimeoutError")).isPassing, true);
  assert.equal(CallError.from(null, 502).isPassing, true);
  assert.equal(CallError.from({ code: "unauthenticated" }, 401).isPassing, false);
});
