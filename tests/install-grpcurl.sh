#!/bin/sh
# Installs grpcurl below the directory given, unless it is there already, and prints its path.
# Needs Go.
set -eu

version=v1.9.4
dir=${1:?usage: install-grpcurl.sh DIRECTORY}/grpcurl-$version

if [ ! -x "$dir/grpcurl" ]; then
    mkdir -p "$dir"
    GOBIN=$(cd "$dir" && pwd) go install "github.com/fullstorydev/grpcurl/cmd/grpcurl@$version" >&2
fi
printf '%s\n' "$dir/grpcurl"
