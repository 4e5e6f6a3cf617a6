# SPDX-License-Identifier: Apache-2.0
# What was acknowledged is there once, and what wasn't is there whole or not at all: after kill -9 at
# random moments, a graceful end, and settings read again, all under load, by HTTP/1.1 and by gRPC.
# See load.py, load_arrow.py and load_upload.py.
. "$ROOT/tests/server/common.bash"
load() { python3 "$ROOT/tests/server/load.py" "$@"; }

load kill --data killed --rounds "${CRASH_ROUNDS:-4}" --check-every "${CRASH_CHECK_EVERY:-1}"
load term --data ended --rounds "${END_ROUNDS:-1}"
load kill --data killed-grpc --rounds "${GRPC_ROUNDS:-2}" --check-every "${CRASH_CHECK_EVERY:-1}" --grpc
load term --data ended-grpc --rounds "${END_ROUNDS:-1}" --grpc
load hup --data reloaded --rounds "${RELOAD_ROUNDS:-8}"
python3 "$ROOT/tests/server/load_arrow.py" arrow "${ARROW_ROUNDS:-2}" "$FIXTURES"
if type gcc readelf >/dev/null; then
    printf 'int main(void) { return 0; }\n' >small.c
    gcc -g -Wl,--build-id=sha1 -o small small.c
    python3 "$ROOT/tests/server/load_upload.py" uploads "${UPLOAD_ROUNDS:-2}" small \
        "$(readelf -n small | sed -n 's/.*Build ID: //p')"
fi

# One server at a time can have the directory: the second says so, and disturbs nobody.
start_server first --data killed -c keep.yaml
if "$ASSAY" server --listen 127.0.0.1:0 --data killed 2>second.log; then exit 1; fi
grep '^assay: .*killed.*\.$' second.log >/dev/null || { cat second.log >&2; exit 1; }
[ "$(wc -l <second.log)" = 1 ]
get /ready >/dev/null
stop_server
