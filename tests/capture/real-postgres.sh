# SPDX-License-Identifier: Apache-2.0
# PostgreSQL under pgbench: backends that the postmaster forks while it is recorded.
# Chance: which code a real program runs under load, and so which stacks are sampled, differs from
# run to run.
. "$ROOT/tests/capture/common.bash"
. "$capture/servers.bash"
need python3 readelf
have_postgres || skip_all "There is no PostgreSQL server here."
start_postgres
pgbench -i -q -s 3 "${postgres[@]}" >/dev/null 2>&1
load() { pgbench -n -c 4 -T "$1" -b select-only@8 -b tpcb-like@2 "${postgres[@]}"; }

options=(--whole 99)
! has_symbols "$(postgres_programs)/postgres" || options+=(--named 95)
real PostgreSQL "$server" "${options[@]}"
