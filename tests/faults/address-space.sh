# SPDX-License-Identifier: Apache-2.0
# A server whose address space is nearly used up refuses what doesn't fit, request by request, and
# goes on; what it acknowledged is there.
. "$ROOT/tests/server/common.bash"
python3 - <<'PYTHON'
import random
random.seed(1)
with open("large.folded", "w") as file:
    for i in range(150000):
        file.write(f"main;part{i % 977};function_with_a_long_name_{i};leaf{i * 7} {i % 9 + 1}\n")
PYTHON
printf 'main;small 1\n' >small.folded
start_server server --data store -c keep.yaml --memory-limit 512M
push large.folded 'service=large0&from=now-20s' >/dev/null # with enough memory, it is taken
refused=0 taken=0 small=0
limit_address_space() { # MiB beyond what it has mapped
    local pages
    read -r pages _ <"/proc/$pid/statm"
    prlimit --pid "$pid" --as=$((pages * 4096 + ($1 << 20))):
}
for room in 64 32 16 8 4 2 1 0; do
    limit_address_space "$room"
    for i in 1 2 3; do
        code=$(curl -sS -o answer.txt -w '%{http_code}' --data-binary @large.folded \
            "$url/api/v1/push?service=large$i&from=now-20s")
        case $code in
        200) taken=$((taken + 1)) ;;
        503 | 413 | 507 | 500) refused=$((refused + 1)) ;;
        *) echo "A large push with $room MiB left got $code: $(cat answer.txt)" && exit 1 ;;
        esac
        code=$(curl -sS -o answer.txt -w '%{http_code}' --data-binary @small.folded \
            "$url/api/v1/push?service=small&from=now-$((room + 10 * i + 100))s")
        [ "$code" != 200 ] || small=$((small + 1))
        kill -0 "$pid" || { tail -n 5 server.log >&2; exit 1; }
    done
done
prlimit --pid "$pid" --as=unlimited:
echo "$taken large pushes taken, $refused refused; $small small ones taken; $(get /metrics | grep '^assay_memory_shortages_total')"
[ "$refused" -gt 0 ]
get /metrics | grep '^assay_memory_shortages_total [1-9]' >/dev/null
get "/api/v1/profile?query=process_cpu:samples:count::%7Bservice_name%3D%22small%22%7D&$always&format=folded" >got.folded
[ "$(cat got.folded)" = "main;small $small" ]
stop_server
"$ASSAY" store check store >/dev/null
