"""Lists the tools and calls each, with the official Python client, and prints the transcript.

Usage: client.py MODE STEPS PROGRAM ARGUMENT...
MODE is `auto` (the newest lifecycle of the protocol) or `legacy` (with `initialize`).
"""

import asyncio
import json
import os
import sys

from mcp import Client, Implementation, StdioServerParameters


def filled(value, ids):
    """The value with each ${name} replaced by the id that was saved under the name."""
    text = json.dumps(value)
    for name, task_id in ids.items():
        text = text.replace("${" + name + "}", task_id)
    return json.loads(text)


def check_tool(tool):
    assert tool.description and tool.title, tool
    assert tool.input_schema["type"] == "object", tool
    assert tool.output_schema["type"] == "object", tool
    assert tool.annotations.read_only_hint is not None, tool
    assert tool.annotations.destructive_hint is not None, tool


async def main(mode, steps, program, arguments):
    server = StdioServerParameters(command=program, args=arguments, env=dict(os.environ))
    info = Implementation(name="python-client", version="1")
    async with Client(server, mode=mode, client_info=info) as client:
        tools = (await client.list_tools()).tools
        for tool in tools:
            check_tool(tool)
        ids = {}
        for step in steps:
            given = filled(step["arguments"], ids)
            # The client checks structured content against the output schema.
            result = await client.call_tool(step["tool"], given)
            text = result.content[0].text
            print(f"> {step['tool']} {json.dumps(given)}\n{text}\n")
            assert bool(result.is_error) == step.get("is_error", False), (step, result)
            if "save" in step:
                ids[step["save"]] = result.structured_content["id"]
            for part in filled(step["expect"], ids):
                assert part in text, (part, text)
        called = {step["tool"] for step in steps}
        assert called == {tool.name for tool in tools}, called
        print(f"protocol {client.protocol_version}", file=sys.stderr)


if __name__ == "__main__":
    with open(sys.argv[2], encoding="utf-8") as file:
        asyncio.run(main(sys.argv[1], json.load(file), sys.argv[3], sys.argv[4:]))
