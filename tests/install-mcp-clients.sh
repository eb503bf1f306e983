#!/bin/sh
# Installs MCP clients below the directory given, unless they are there already, and prints their directory:
# `python` for the official Python client, `node` for the official TypeScript client and the inspector.
# Needs Python with venv, or npm.
set -eu

python_client=mcp==2.3.0
node_client=@modelcontextprotocol/sdk@1.32.2
inspector=@modelcontextprotocol/inspector@2.12.0

usage='usage: install-mcp-clients.sh python|node DIRECTORY'
which=${1:?$usage}
dir=${2:?$usage}/mcp-$which

case $which in
python) wanted=$python_client ;;
node) wanted="$node_client $inspector" ;;
*) echo "$usage" >&2; exit 2 ;;
esac

if [ "$(cat "$dir/installed" 2>/dev/null)" != "$wanted" ]; then
    rm -rf "$dir"
    mkdir -p "$dir"
    case $which in
    python)
        python3 -m venv "$dir" >&2
        "$dir/bin/pip" install --quiet --disable-pip-version-check "$python_client" >&2
        ;;
    node)
        # shellcheck disable=SC2086 # two packages
        npm install --silent --no-audit --no-fund --prefix "$dir" $wanted >&2
        ;;
    esac
    printf '%s' "$wanted" >"$dir/installed"
fi
printf '%s\n' "$dir"
