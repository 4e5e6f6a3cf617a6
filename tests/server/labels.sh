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

get /api/v1/health >health.json
json health.json 'd["status"] == "ok"'
for shard in 1 2 3 4 5 6 7 8; do
    push secret.folded "service=mailer&shard=$shard&from=now-10s" >pushed.json
done
[ "$(get "/api/v1/label/shard/values?$always")" = '["1","2","3","4","5","other"]' ]
get "/api/v1/timeseries?query=cpu%7Bshard%3D%22other%22%7D&$always&step=3650d" >points.json
json points.json 'd["series"][0]["points"][0][1] == 21'
get /metrics >metrics.txt
grep '^assay_labels_changed_total{reason="too_many_values"} 3$' metrics.txt >/dev/null
grep '^assay_labels_changed_total{reason="not_allowed"} 1$' metrics.txt >/dev/null
# What was redacted is counted, by detector and rule.
awk '/^assay_redactions_total\{detector="email"\} / { found = $2 > 0 } END { exit !found }' metrics.txt
grep '^# TYPE assay_redactions_total counter$' metrics.txt >/dev/null

# Whoever sends, asks or looks after the server learns of it.
json pushed.json 'd["capped_series"] == 1'
grep '^assay_ingest_capped_series_total 3$' metrics.txt >/dev/null
get /api/v1/senders >senders.json
json senders.json 'd[0]["capped"] == 3'
get /api/v1/health >health.json
json health.json 'd["status"] == "degraded" and any("Label shard of tenant anonymous has reached its limit of 5 values" in p for p in d["problems"])'
get "/api/v1/flame?query=cpu&$always" >flame.json
json flame.json 'd["quality"]["capped_labels"] == 1'
get "/api/v1/flame?query=cpu%7Bshard%3D%221%22%7D&$always" >flame.json
json flame.json 'd["quality"]["capped_labels"] == 0'

# Nothing of it is in the store's files either.
stop_server
grep -r -a -E 'ada@example|eve@example' store && exit 1
exit 0
