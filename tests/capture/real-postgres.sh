# SPDX-License-Identifier: Apache-2.0
# PostgreSQL under pgbench: backends that the postmaster forks while it is recorded.
# Chance: which code a real program runs under load, and so which stacks are sampled, differs from
# run to run.
. "$ROOT/tests/capture/common.bash"
need python3 readelf pgbench
programs=$(pg_config --bindir 2>/dev/null || true)
for folder in /usr/lib/postgresql/*/bin; do
    [ -x "$programs/initdb" ] || programs=$folder
done
[ -x "$programs/initdb" ] || skip_all "There is no PostgreSQL server here."

# It refuses to run as root.
as_user=()
if [ "$(id -u)" -eq 0 ]; then
    user=postgres
    id "$user" >/dev/null 2>&1 || user=nobody
    need setpriv
    as_user=(setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups)
    chmod 711 "$PWD/.."
    mkdir data
    chown "$user" data
    chmod 755 .
fi
data=$PWD/data
"${as_user[@]}" "$programs/initdb" -D "$data/db" -A trust -U bench --no-sync >initdb.said 2>&1 || {
    cat initdb.said
    exit 1
}
"${as_user[@]}" "$programs/postgres" -D "$data/db" -k "$data" -c listen_addresses= -c fsync=off \
    -c autovacuum=off >postgres.said 2>&1 &
server=$!
started+=("$server")
connect=(-h "$data" -U bench postgres)
wait_until 30 "$programs/pg_isready" -h "$data" || { cat postgres.said && exit 1; }
pgbench -i -q -s 3 "${connect[@]}" >/dev/null 2>&1
load() { pgbench -n -c 4 -T "$1" -b select-only@8 -b tpcb-like@2 "${connect[@]}"; }

options=(--whole 99)
! has_symbols "$programs/postgres" || options+=(--named 95)
real PostgreSQL "$server" "${options[@]}"
