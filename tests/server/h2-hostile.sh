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
for reason in flood malformed overload slow_body slow_head half_closed; do
    grep -q "^assay_http_refused_total{reason=\"$reason\"} [1-9]" metrics.txt
done
for line in 'Closed an HTTP/2 connection: 127.0.0.1 sent' 'Refused malformed requests: the first from 127.0.0.1' \
    'Closed HTTP/2 connections that were half closed during requests: the first' \
    'Refused requests: too many at once: the first' 'Ended requests whose bodies arrived too slowly: the first'; do
    grep -q "warning: $line" hostile.log
done
stop_server
