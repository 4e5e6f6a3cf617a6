# SPDX-License-Identifier: Apache-2.0
# The API's document is true of a running server: see openapi.py.
. "$ROOT/tests/server/common.bash"

cat >>keep.yaml <<'Y'
source_links:
  - {url: "https://git.example/{commit}/{path}#L{line}", commit: main}
Y
# The times of a recording's samples, from another server, so that this one has one type called cpu.
"$ASSAY" convert "$FIXTURES/man/base.pb.gz" -o base.firefox.json
"$ASSAY" convert base.firefox.json -o recording.otlp
start_server other --data other -c keep.yaml
curl -sS --fail-with-body -o taken -H 'X-Assay-Batch-Id: 17979cfe36a00000-0000000000000001-rother' \
    -H 'Content-Type: application/x-protobuf' --data-binary @recording.otlp "$url/v1development/profiles"
stop_server
start_server disk --data data -c keep.yaml
push "$FIXTURES/man/base.pb.gz" 'service=shop&host=h1' >/dev/null
python3 "$ROOT/tests/server/window_pprof.py" wall.pb wall nanoseconds "$(date +%s)" 10 \
    'main;serve=1000000000,state=running' 'main;take=2000000000,state=lock'
push wall.pb 'service=shop&host=h1' >/dev/null
python3 "$ROOT/tests/server/window_pprof.py" wall.pb wall nanoseconds "$(($(date +%s) - 5400))" 10 \
    'main;serve=1000000000,state=running' 'main;take=1000000000,state=lock'
push wall.pb 'service=shop&host=h1' >/dev/null
curl -sS --fail-with-body -o orders.json -d '{"agent":"a1","host":"h1","status":{"rate_hz":19,"losses":{"ring_full":2}}}' \
    "$url/api/v1/agents/report"
curl -sS --fail-with-body -o saved.json --data-binary @"$FIXTURES/man/base.pb.gz" \
    "$url/api/v1/baselines?name=endpoint"
recording=$(curl -sS --fail-with-body -H 'Content-Type: application/json' -d '{"service":"shop"}' \
    "$url/api/v1/recordings" | python3 -c 'import json, sys; print(json.load(sys.stdin)["id"])')
mkdir data/recorded
kept=$(ls other/recorded)
cp "other/recorded/$kept" "data/recorded/${kept/rother/$recording}"
curl -sS --fail-with-body -o control.json -H 'Content-Type: application/json' \
    -d '{"capture":"off","selector":"{host=\"h1\"}"}' "$url/api/v1/control"
build=$(curl -sS --fail-with-body --data-binary @"$(type -P true)" "$url/api/v1/debuginfo?name=true" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["build_id"])')
printf 'int main(void) { return 0; }\n' >true.c
sum=$(sha256sum <true.c | cut -d ' ' -f 1)
curl -sS --fail-with-body -o listed.json -d "$sum  /src/true.c" "$url/api/v1/sources?build_id=$build"
curl -sS --fail-with-body -o sent.json --data-binary @true.c "$url/api/v1/sources/$sum"
python3 "$ROOT/tests/server/openapi.py" "$url" a1 "$recording" "$build"

# The page is for people: it loads nothing and runs nothing.
curl -sS -D head.txt "$url/api" >page.html
grep -i "^content-security-policy: default-src 'none';" head.txt >/dev/null
[[ $(cat page.html) == *"/api/v1/callers"* ]]
if grep -iE '<script|src=|@import|https?://' page.html; then exit 1; fi
stop_server
