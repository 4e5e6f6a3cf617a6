#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# HTTP/2 and gRPC beside HTTP/1.1, on the same server with the same pushes: rows per core, memory of
# 1,000 agents and of idle connections. See README.md. $BUILD is a build directory; build/ when not
# set.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
build=${BUILD:-build}
ninja -C "$build" assay >/dev/null
type h2load zstd >/dev/null || { echo "Install nghttp2-client and zstd." >&2; exit 1; }
PYTHONPATH=tests/server exec python3 bench/grpc.py --assay "$build/assay" "$@"
