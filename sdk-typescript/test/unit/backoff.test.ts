import assert from "node:assert/strict";
import { test } from "node:test";

import { Backoff } from "../../src/connection/backoff.js";

test("delays double up to the longest", () => {
  const backoff = new Backoff(Infinity, () => 0);
  const delays = Array.from({ length: 10 }, () => backoff.afterFailure(0));
  assert.deepEqual(delays.slice(0, 3), [10, 20, 40]);
  assert.equal(delays[9], 1000);
  assert.equal(new Backoff(Infinity, () => 1).afterFailure(0), 5, "jitter removes at most half");
});

test("the limit counts delays and attempts, and a call that was served starts again", () => {
  const backoff = new Backoff(30, () => 0);
  assert.equal(backoff.afterFailure(10), 10);
  assert.equal(backoff.afterFailure(10), undefined);
  assert.equal(backoff.afterFailure(60_000), 10);
  assert.equal(new Backoff(0).afterFailure(0), undefined, "a limit of 0 means one attempt");
});
