# SPDX-License-Identifier: Apache-2.0
# A day's file that is damaged is set aside with an error that names it, and the other days serve:
# when it is cut, or garbage, or random bytes of it are flipped, before the start or while serving.
. "$ROOT/tests/server/common.bash"

# damaged_files DAY: what the quality of an answer about that day says.
damaged_files() {
    get "/api/v1/flame?query=process_cpu:samples:count::&from=2026-11-$1T00:00:00Z&to=2026-11-$1T23:00:00Z" \
        >flame.json
    json flame.json 'd["quality"]["damaged_files"]'
}

# Three days, two series each; their files as they are when nothing is wrong.
start_server good --data good -c keep.yaml
for day in 11 12 13; do
    for service in a b; do
        printf 'main;day%s;%s %s\n' "$day" "$service" "$day" >one.folded
        push one.folded "service=$service&from=2026-11-${day}T12:00:00Z" >/dev/null
    done
done
days() { # what each day's total is, by function: 0 where the day is gone
    # By its whole name: a damaged one would make the short one ambiguous.
    get "/api/v1/flame?query=process_cpu:samples:count::&$always&format=folded" >got.folded
    for day in 11 12 13; do
        printf '%s=%s ' "$day" "$(sed -n "s/^main;day$day;. //p" got.folded | paste -sd+)"
    done
}
whole='11=11+11 12=12+12 13=13+13 '
[ "$(days)" = "$whole" ]
stop_server
middle=anonymous/raw-default-2026-11-12.assay
[ -f "good/$middle" ]

# try NAME: the store in NAME has a damaged second day.
try() {
    start_server "$1" --data "$1" -c keep.yaml
    [ "$(days)" = '11=11+11 12= 13=13+13 ' ]
    # What shows only when it is read is in the log a moment later.
    for _ in $(seq 1200); do
        [[ $(<"$1.log") != *"$middle"* ]] || break
        sleep 0.05
    done
    [[ $(<"$1.log") == *"$middle"* ]] || { echo "$1.log doesn't name the file" >&2; cat "$1.log" >&2; return 1; }
    [ -f "$1/$middle.damaged" ]
    get /api/v1/health >health.json
    json health.json 'd["status"] == "degraded" and any("2026-11-12" in p for p in d["problems"])'
    # The day can be written again, and the others as well.
    push one.folded 'service=c&from=now-10s' >/dev/null
    get /metrics >metrics.txt
    grep '^assay_store_damaged_files 1$' metrics.txt >/dev/null
    [ "$(damaged_files 12) $(damaged_files 13)" = '1 0' ]
    stop_server
}

# forgotten NAME: it isn't, until somebody says that it may be.
forgotten() {
    if "$ASSAY" store check "$1" >check.txt; then exit 1; fi
    grep "$middle.damaged is damaged" check.txt >/dev/null
    if "$ASSAY" store export "$1" all.export 2>export.txt; then exit 1; fi
    grep -i '1 file' export.txt >/dev/null || { cat export.txt; exit 1; }
    start_server again --data "$1" -c keep.yaml
    get /api/v1/health >health.json
    json health.json 'd["status"] == "degraded" and d["store"]["damaged_files"] == 1
        and any("2026-11-12" in p for p in d["problems"])'
    [ "$(damaged_files 12) $(damaged_files 13)" = '1 0' ]
    for parameters in '' 'file=x' "file=$middle" 'file=nothing&reason=x'; do
        if curl -sS --fail -X POST -H 'X-Assay-Confirm: acknowledge' \
            "$url/api/v1/admin/acknowledge?$parameters" >/dev/null 2>&1; then exit 1; fi
    done
    status 400 -X POST "$url/api/v1/admin/acknowledge?file=$middle&reason=x" # without the header
    code=0
    "$ASSAY" store acknowledge "$middle" --url "$url" 2>usage.txt || code=$?
    [ "$code" = 2 ]
    "$ASSAY" store acknowledge "$middle" --reason 'the disk was bad' --url "$url"
    get /api/v1/health >health.json
    json health.json 'd["status"] == "ok" and not d["problems"]'
    [ "$(damaged_files 12)" = 0 ]
    stop_server
    "$ASSAY" store audit "$1" | grep '"acknowledge".*raw-default-2026-11-12.*the disk was bad' >/dev/null
    "$ASSAY" store check "$1"
}
damage() { # NAME: a copy to damage, $file
    cp -r good "$1"
    file=$1/$middle
}
damage cut
truncate -s 1000 "$file"
try cut
forgotten cut
damage garbage
head -c 65536 /dev/urandom >"$file"
try garbage
damage header
printf 'XXXX' | dd of="$file" bs=1 seek=0 conv=notrunc status=none
# Nobody has opened it yet.
if "$ASSAY" store check header >check.txt; then exit 1; fi
grep "$middle is damaged" check.txt >/dev/null
try header
"$ASSAY" store acknowledge "header/$middle.damaged" --reason 'restored elsewhere'
"$ASSAY" store check header
"$ASSAY" store audit header | grep 'restored elsewhere' >/dev/null
if "$ASSAY" store acknowledge "header/$middle.damaged" --reason again 2>/dev/null; then exit 1; fi
damage empty
: >"$file"
try empty

# One letter of a type's name, which only its row's checksum knows of.
damage letter
python3 - "$file" <<'PYTHON'
import sys
data = open(sys.argv[1], "rb").read()
if b"process_cpu:samples:count" not in data: sys.exit("The type's name isn't there.")
open(sys.argv[1], "wb").write(data.replace(b"process_cpu:samples:count", b"process_cpu:sanples:count"))
PYTHON
try letter

# Bytes anywhere: the server starts and answers, and other days are never touched.
flip() { # FILE SEED
    python3 - "$1" "$2" <<'PYTHON'
import random, sys
chance = random.Random(int(sys.argv[2]))
data = bytearray(open(sys.argv[1], "rb").read())
for _ in range(chance.choice([1, 4, 64])):
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
open(sys.argv[1], "wb").write(data)
PYTHON
}
for ((seed = 1; seed <= ${DAMAGE_ROUNDS:-5}; seed++)); do
    rm -rf flipped
    damage flipped
    flip "$file" "$seed"
    start_server flipped --data flipped -c keep.yaml
    got=$(days)
    if [[ $got != '11=11+11 '*' 13=13+13 ' ]]; then
        echo "With seed $seed: $got" >&2
        exit 1
    fi
    get /api/v1/health >/dev/null
    push one.folded 'service=c&from=now-10s' >/dev/null
    stop_server
    "$ASSAY" store check flipped >/dev/null 2>&1 || true
done

# While it serves: what is in use goes bad under it.
damage serving
start_server serving --data serving -c keep.yaml
[ "$(days)" = "$whole" ]
head -c "$(stat -c %s "$file")" /dev/urandom | dd of="$file" conv=notrunc status=none
for _ in 1 2 3; do
    get "/api/v1/series?$always" >/dev/null || true
    got=$(days || true)
done
[[ $got == '11=11+11 '*' 13=13+13 ' ]]
push one.folded 'service=c&from=now-10s' >/dev/null
get /api/v1/health >/dev/null
stop_server
