# SPDX-License-Identifier: Apache-2.0
# kill -9 while retention deletes: a day that is too old is there whole or gone, days that are kept are
# always there, and the store is in order after every round.
. "$ROOT/tests/server/common.bash"
printf 'retention: {raw: 0, ten_minutes: 0, hour: 0, day: 0}\n' >all.yaml
printf 'retention: {raw: 30d, ten_minutes: 30d, hour: 30d, day: 30d}\n' >short.yaml
rounds=${ASSAY_ROUNDS:-30}
days=$(seq 1 3; seq 60 80)
killed=0
for ((round = 0; round < rounds; round++)); do
    rm -rf store
    start_server filled --data store -c all.yaml
    for day in $days; do
        printf 'main;day%s 7\nmain;day%s;leaf 5\n' "$day" "$day" >one.folded
        push one.folded "service=s&from=now-${day}d" >/dev/null
    done
    stop_server
    # From the first deletion on it is killed at another moment each time.
    start_server deleting --data store -c short.yaml
    files=$(find store -name 'raw-*.assay' | wc -l)
    for _ in $(seq 2000); do
        [ "$(find store -name 'raw-*.assay' | wc -l)" -ge "$files" ] || break
        sleep 0.005
    done
    sleep "0.0$((round % 10))"
    kill -9 "$pid"
    wait "$pid" 2>/dev/null || true
    left=$(find store -name 'raw-*.assay' | wc -l)
    [ "$left" -eq "$files" ] || killed=$((killed + 1))
    "$ASSAY" store check store >check.txt || { cat check.txt; exit 1; }
    start_server again --data store -c all.yaml
    get "/api/v1/profile?query=process_cpu:samples:count::&$always&format=folded" >got.folded
    for day in 1 2 3; do
        grep -x "main;day$day 7" got.folded >/dev/null && grep -x "main;day$day;leaf 5" got.folded >/dev/null ||
            { echo "Day $day is missing in round $round:" && cat got.folded && exit 1; }
    done
    for day in $(seq 60 80); do
        lines=$(grep -c "^main;day$day[; ]" got.folded || true)
        [ "$lines" = 0 ] || [ "$lines" = 2 ] || { echo "Half of day $day is there." && exit 1; }
    done
    get /api/v1/health >health.json
    json health.json 'd["status"] == "ok"'
    stop_server
done
echo "$killed of $rounds servers were killed after they had begun to delete"
[ "$killed" -gt 0 ]
