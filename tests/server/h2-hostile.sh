# SPDX-License-Identifier: Apache-2.0
# Peers of HTTP/2 that mean harm: floods of frames, bombs of headers, tiny windows, streams that
# stall, connections that are half closed. Each is cut off, counted and logged, takes bounded memory,
# and leaves the server to others.
. "$ROOT/tests/server/common.bash"

printf 'limits: {idle_timeout: 4s}\n' >>keep.yaml
start_server hostile --data store -c keep.yaml --memory-limit 64M
# The address sanitizer keeps memory that was given back.
sanitized=0
if [[ $(ldd "$ASSAY") == *libasan* ]]; then sanitized=1; fi
python3 "$ROOT/tests/server/h2_hostile.py" "${url#http://}" "$pid" $sanitized
get /metrics >metrics.txt
grep -q '^assay_http_refused_total{reason="flood"} [1-9]' metrics.txt
grep -q '^assay_http_refused_total{reason="slow_body"} [1-9]' metrics.txt
grep -q 'warning: Closed an HTTP/2 connection: 127.0.0.1 sent' hostile.log
stop_server
