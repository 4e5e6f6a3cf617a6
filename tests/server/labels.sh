# SPDX-License-Identifier: Apache-2.0
# Rules for labels hold before anything is stored: the allow-list, "other" for values beyond the
# limit, and redaction of labels and, where asked for, of names.
. "$ROOT/tests/server/common.bash"

cat >rules.yaml <<'YAML'
retention: {raw: 0}
labels: {allow: [user, shard], max_values_per_name: 5}
redact: {names: true}
YAML
printf 'main;mail ada@example.org 7\n' >secret.folded
start_server rules --data store -c rules.yaml
push secret.folded 'service=mailer&user=eve%40example.org&unwanted=1&from=now-10s' >/dev/null
get "/api/v1/series?$always" >series.json
json series.json 'len(d) == 1 and "unwanted" not in d[0]["labels"] and d[0]["labels"]["user"]' >user.txt
grep example.org user.txt && exit 1
get "/api/v1/flame?query=cpu&$always&format=folded" >got.folded
grep 'main;mail .* 7' got.folded >/dev/null
grep ada got.folded && exit 1

for shard in 1 2 3 4 5 6 7 8; do
    push secret.folded "service=mailer&shard=$shard&from=now-10s" >/dev/null
done
[ "$(get "/api/v1/label/shard/values?$always")" = '["1","2","3","4","5","other"]' ]
get "/api/v1/timeseries?query=cpu%7Bshard%3D%22other%22%7D&$always&step=3650d" >points.json
json points.json 'd["series"][0]["points"][0][1] == 21'
get /metrics >metrics.txt
grep '^assay_labels_changed_total{reason="too_many_values"} 3$' metrics.txt >/dev/null
grep '^assay_labels_changed_total{reason="not_allowed"} 1$' metrics.txt >/dev/null

# Nothing of it is in the store's files either.
stop_server
grep -r -a -E 'ada@example|eve@example' store && exit 1
exit 0
