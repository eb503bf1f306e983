/** The conformance cases, which every client of Heeler runs: ../../../tests/conformance. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";

import type { JsonValue } from "@bufbuild/protobuf";

import { RefusedError } from "../../src/index.js";
import { isObject, type JsonObject, match } from "./match.js";
import { Daemon } from "../support/daemon.js";
import { PACKAGE } from "../support/package.js";
import { findStep, type Scene } from "./steps.js";

const ROOT = join(PACKAGE, "..");
const STEP_DEADLINE_MS = 30_000;

interface Case {
  readonly name: string;
  readonly serve?: readonly string[];
  readonly steps: readonly Step[];
}

interface Step {
  readonly do: string;
  readonly with?: JsonObject;
  readonly as?: string;
  readonly expect?: JsonValue;
  readonly error?: JsonObject;
}

const cases = JSON.parse(
  readFileSync(join(ROOT, "tests/conformance/cases.json"), "utf8"),
) as readonly Case[];

const results = new Map<string, string>();

after(() => {
  if (results.size < cases.length) {
    return;
  }
  const folder = join(ROOT, "target/conformance");
  mkdirSync(folder, { recursive: true });
  const report = { client: "typescript", results: Object.fromEntries(results) };
  writeFileSync(join(folder, "typescript.json"), `${JSON.stringify(report, undefined, 2)}\n`);
});

for (const one of cases) {
  test(`conformance: ${one.name}`, async () => {
    try {
      await play(one);
      results.set(one.name, "passed");
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      results.set(one.name, `failed: ${text}`);
      throw error;
    }
  });
}

test("the conformance runner fails on unknown steps, unknown fields and wrong results", async () => {
  const spawn = (fields: JsonObject, rest: Partial<Step> = {}): Case => {
    const spec = { shell: { script: "exit 0" }, ...fields };
    return { name: "none", steps: [{ do: "spawn", with: { spec }, as: "t", ...rest }] };
  };
  await play(spawn({}));
  await assert.rejects(play({ name: "none", steps: [{ do: "dance" }] }), /unknown step dance/u);
  await assert.rejects(play(spawn({ nmae: "x" })), /"nmae" is unknown/u);
  const inner = { shell: { script: "exit 0", flags: "" } };
  await assert.rejects(play(spawn(inner)), /"flags" is unknown/u);
  const wrong = { task: { spec: { name: "~y+", kind: "TASK_KIND_SHELL" } } };
  await assert.rejects(
    play(spawn({ name: "yx" }, { expect: wrong })),
    /spawn.task.spec.name should be/u,
  );
  const absent = { task: { state: null } };
  await assert.rejects(play(spawn({}, { expect: absent })), /spawn.task.state should be "absent"/u);
  const refused = { error: { code: "NOT_FOUND" } };
  await assert.rejects(play(spawn({}, refused)), /should be refused/u);
  await assert.rejects(play(spawn({ timeout: "-1s" }, refused)), /the error.code should be/u);
});

/** Plays a case with a daemon of its own. */
async function play(one: Case): Promise<void> {
  checkKeys("the case", one, ["name", "shows", "serve", "steps"]);
  await using daemon = await Daemon.start(...(one.serve ?? []));
  using client = await daemon.connect();
  const dir = join(daemon.dir, "case");
  mkdirSync(dir);
  const names = new Map([["DIR", dir]]);
  const touched = new Set<string>();
  const playSteps = async (steps: readonly Step[]): Promise<void> => {
    for (const step of steps) {
      const signal = AbortSignal.timeout(STEP_DEADLINE_MS);
      const during: Scene["during"] = async (inner) => {
        await playSteps(inner as readonly Step[]);
      };
      await playStep({ daemon, client, signal, touched, during }, names, step);
    }
  };
  await playSteps(one.steps);
}

async function playStep(scene: Scene, names: Map<string, string>, step: Step): Promise<void> {
  checkKeys("the step", step, ["do", "with", "as", "expect", "error"]);
  const what = step.do;
  const action = findStep(what);
  assert(action, `unknown step ${what}`);
  // Steps inside of a step may use names that are stored later.
  const { during, ...fields } = step.with ?? {};
  const named = resolve(names, fields) as JsonObject;
  const doing = action(scene, during === undefined ? named : { ...named, during });
  if (step.error !== undefined) {
    assert(step.expect === undefined, "a step has either expect or error");
    const error = await doing.then(
      () => assert.fail(`${what} should be refused`),
      (thrown: unknown) => thrown,
    );
    matchError(what, resolve(names, step.error) as JsonObject, error);
    return;
  }
  const { result, stores } = await doing;
  if (step.as !== undefined) {
    assert(stores, `${what} has no value for \`as\``);
    names.set(step.as, stores);
  }
  if (step.expect !== undefined) {
    match(what, resolve(names, step.expect), result);
  }
}

function matchError(what: string, expected: JsonObject, error: unknown): void {
  checkKeys("the error", expected, ["code", "reason", "field", "metadata"]);
  if (!(error instanceof RefusedError)) {
    throw error;
  }
  const { code, reason, metadata, fields } = error;
  const found: JsonObject = { code, metadata: { ...metadata } };
  if (reason !== undefined) {
    found["reason"] = reason;
  }
  const field = fields.find((one) => one.field === expected["field"]) ?? fields[0];
  if (field !== undefined) {
    found["field"] = field.field;
  }
  match(`${what}: the error`, expected, found);
}

/** Replaces each `$name` in strings by its value. */
function resolve(names: ReadonlyMap<string, string>, value: JsonValue): JsonValue {
  if (typeof value === "string") {
    return value.replaceAll(/\$([A-Za-z]+)/gu, (text, name: string) => names.get(name) ?? text);
  }
  if (Array.isArray(value)) {
    return value.map((item) => resolve(names, item));
  }
  if (isObject(value)) {
    const entries = Object.entries(value).map(([key, item]) => [key, resolve(names, item)]);
    return Object.fromEntries(entries) as JsonObject;
  }
  return value;
}

function checkKeys(what: string, given: object, known: readonly string[]): void {
  const unknown = Object.keys(given).filter((key) => !known.includes(key));
  assert.deepEqual(unknown, [], `${what} has keys that this runner does not know`);
}
