#!/bin/sh
# Installs Debian's Chromium unless a `chromium` is on PATH. Needs root or sudo, and apt.
set -eu

if command -v chromium >/dev/null; then
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    echo 'install-chromium.sh: there is no apt-get: install chromium by hand' >&2
    exit 1
fi
run=
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null && sudo -n true 2>/dev/null || {
        echo 'install-chromium.sh: needs root: run `sudo apt-get install chromium`' >&2
        exit 1
    }
    run='sudo -n'
fi
export DEBIAN_FRONTEND=noninteractive
$run apt-get update --quiet >&2
$run apt-get install --quiet --yes --no-install-recommends chromium fonts-dejavu-core >&2
