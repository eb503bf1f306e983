import assert from "node:assert/strict";
import { test } from "node:test";

import { Backoff } from "../../src/connection/backoff.js";

test("delays double up to the longest", () => {
  const backoff = new Backoff(Infinity, () => 0);
  const delays = Array.from({ length: 10 }, () => backoff.afterFailure(0, true));
  assert.deepEqual(delays.slice(0, 3), [10, 20, 40]);
  assert.equal(delays[9], 1000);
  assert.equal(
    new Backoff(Infinity, () => 1).afterFailure(0, true),
    5,
    "jitter removes at most half",
  );
});

test("the limit counts delays and attempts, and a call that was served starts again", () => {
  const backoff = new Backoff(30, () => 0);
  assert.equal(backoff.afterFailure(10, true), 10);
  assert.equal(backoff.afterFailure(10, true), undefined);
  assert.equal(backoff.afterFailure(60_000, true), 10);
  assert.equal(new Backoff(0).afterFailure(0, true), undefined, "a limit of 0 means one attempt");
});

test("attempts to connect count however long they take, so that the limit is reached", () => {
  const backoff = new Backoff(25_000, () => 0);
  assert.equal(backoff.afterFailure(10_000, false), 10);
  assert.equal(backoff.afterFailure(10_000, false), 20);
  assert.equal(backoff.afterFailure(10_000, false), undefined);
});
