# SPDX-License-Identifier: Apache-2.0
# nginx under wrk: a worker that compresses what it sends.
# Chance: which code a real program runs under load, and so which stacks are sampled, differs from
# run to run.
. "$ROOT/tests/capture/common.bash"
need python3 readelf nginx wrk

port=$(free_port)
mkdir site temporary
seq 2000 >site/index.html
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
nginx -p "$PWD" -e stderr -c "$PWD/nginx.conf" >nginx.said 2>&1 &
master=$!
started+=("$master")
wait_until 20 answers "$port" || { cat nginx.said && exit 1; }
load() { wrk -t 1 -c 16 -d "$1" -H 'Accept-Encoding: gzip' "http://127.0.0.1:$port/index.html"; }

options=(--whole 99)
! has_symbols "$(command -v nginx)" || options+=(--named 95)
real nginx "$master" "${options[@]}"
