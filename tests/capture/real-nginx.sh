# SPDX-License-Identifier: Apache-2.0
# nginx under wrk: a worker that compresses what it sends.
# Chance: which code a real program runs under load, and so which stacks are sampled, differs from
# run to run.
. "$ROOT/tests/capture/common.bash"
. "$capture/servers.bash"
need python3 readelf nginx wrk

start_nginx
load() { wrk -t 1 -c 16 -d "$1" -H 'Accept-Encoding: gzip' "$address"; }

options=(--whole 99)
! has_symbols "$(command -v nginx)" || options+=(--named 95)
real nginx "$server" "${options[@]}"
