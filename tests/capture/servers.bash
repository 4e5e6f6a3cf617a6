# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# Real servers in the test's directory, for tests that read common.bash first. Each start_* sets
# `server`, the process, and fails where it cannot be started; have_* says whether it is installed.
# `around` is what they run under: around=(env LD_PRELOAD=...).

around=()

postgres_programs() {
    local folder
    for folder in "$(pg_config --bindir 2>/dev/null || true)" /usr/lib/postgresql/*/bin; do
        if [ -x "$folder/initdb" ]; then echo "$folder" && return; fi
    done
    return 1
}
have_postgres() { postgres_programs >/dev/null && type psql pgbench setpriv >/dev/null 2>&1; }
# Sets `postgres`, the options by which clients connect.
start_postgres() {
    local programs user data as_user=()
    programs=$(postgres_programs)
    # It refuses to run as root.
    if [ "$(id -u)" -eq 0 ]; then
        user=postgres
        id "$user" >/dev/null 2>&1 || user=nobody
        as_user=(setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups)
        chmod 711 "$PWD/.."
        mkdir data
        chown "$user" data
        chmod 755 .
    fi
    data=$PWD/data
    postgres=(-h "$data" -U bench postgres)
    "${as_user[@]}" "$programs/initdb" -D "$data/db" -A trust -U bench --no-sync >initdb.said 2>&1 || {
        cat initdb.said
        return 1
    }
    "${as_user[@]}" "${around[@]}" "$programs/postgres" -D "$data/db" -k "$data" -c listen_addresses= \
        -c fsync=off -c autovacuum=off >postgres.said 2>&1 &
    server=$!
    started+=("$server")
    wait_until 30 "$programs/pg_isready" -h "$data" || { cat postgres.said && return 1; }
}

# Debian's tools bring the server along under another name.
redis_program() { command -v redis-server || command -v redis-check-rdb; }
have_redis() { redis_program >/dev/null && type redis-cli >/dev/null 2>&1; }
# start_redis SOCKET [OPTION...]
start_redis() {
    # shellcheck disable=SC2016
    "${around[@]}" bash -c 'exec -a redis-server "$@"' - "$(redis_program)" --port 0 \
        --unixsocket "$PWD/$1" --save '' --appendonly no "${@:2}" >redis.said 2>&1 &
    server=$!
    started+=("$server")
    wait_until 20 test -S "$1" || { cat redis.said && return 1; }
}

have_nginx() { type nginx >/dev/null 2>&1; }
# start_nginx [LINES]: a worker that compresses what it sends. Sets `address`, of a page of so many.
start_nginx() {
    local port
    port=$(free_port)
    mkdir site temporary
    seq "${1:-2000}" >site/index.html
    cat >nginx.conf <<END
daemon off;
worker_processes 1;
pid $PWD/nginx.pid;
error_log stderr;
events { worker_connections 256; }
http {
    access_log off;
    gzip on;
    client_body_temp_path $PWD/temporary;
    proxy_temp_path $PWD/temporary;
    fastcgi_temp_path $PWD/temporary;
    uwsgi_temp_path $PWD/temporary;
    scgi_temp_path $PWD/temporary;
    server { listen 127.0.0.1:$port; root $PWD/site; }
}
END
    [ "$(id -u)" -ne 0 ] || sed -i '1i user root;' nginx.conf
    "${around[@]}" nginx -p "$PWD" -e stderr -c "$PWD/nginx.conf" >nginx.said 2>&1 &
    server=$!
    started+=("$server")
    address=http://127.0.0.1:$port/index.html
    wait_until 20 answers "$port" || { cat nginx.said && return 1; }
}
