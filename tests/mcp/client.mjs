// Lists the tools and calls each, with the official TypeScript client.
// Usage: node client.mjs STEPS PROGRAM ARGUMENT...
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [stepsFile, command, ...args] = process.argv.slice(2);
const steps = JSON.parse(await readFile(stepsFile, "utf8"));
const ids = new Map();

/** The value with each ${name} replaced by the id that was saved under the name. */
function filled(value) {
  const text = JSON.stringify(value).replace(/\$\{(\w+)\}/g, (all, name) => ids.get(name) ?? all);
  return JSON.parse(text);
}

const client = new Client({ name: "typescript-client", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env: { ...process.env } }));
const { tools } = await client.listTools();
for (const tool of tools) {
  assert(tool.description && tool.outputSchema && tool.annotations, tool.name);
  assert.equal(tool.inputSchema.type, "object");
}
for (const step of steps) {
  // The client checks structured content against the output schema.
  const result = await client.callTool({ name: step.tool, arguments: filled(step.arguments) });
  const text = result.content[0].text;
  assert.equal(result.isError ?? false, step.is_error ?? false, text);
  if (step.save) ids.set(step.save, result.structuredContent.id);
  for (const part of filled(step.expect)) assert(text.includes(part), `${part}: ${text}`);
}
assert.deepEqual(new Set(steps.map((step) => step.tool)), new Set(tools.map((tool) => tool.name)));
await client.close();
console.log(`${steps.length} calls`);
