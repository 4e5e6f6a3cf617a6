# SPDX-License-Identifier: Apache-2.0
# A spike stays visible however long the range is: a day has at least 300 points, and each says how
# low and how high values were within it.
. "$ROOT/tests/server/common.bash"

start_server spikes --data data -c keep.yaml
# Two hours of windows of a minute, of which two minutes cost 2.2 times as much.
start=1794700800
python3 - "$url" $start <<'END'
import sys, urllib.request
url, start = sys.argv[1], int(sys.argv[2])
for minute in range(120):
    value = 220 if minute in (61, 62) else 100
    time = start + 60 * minute
    request = urllib.request.Request(
        f"{url}/api/v1/push?service_name=app&format=folded&from={time}&to={time + 60}",
        data=f"main;work {value}\n".encode(), method="POST")
    urllib.request.urlopen(request).read()
END
day="query=samples&from=$((start - 43200))&to=$((start + 43200))"
get "/api/v1/timeseries?$day" >day.json
json day.json '86400 / d["step_seconds"] >= 300'
json day.json 'sum(v[1] for v in d["series"][0]["points"]) == 120 * 100 + 240'
json day.json 'd["variation"]["piece_seconds"] == 60'
highs='[h for _, _, h in d["variation"]["points"]]'
json day.json "abs(max($highs) - 220 / 60) < 1e-6 and abs(min($highs) - 100 / 60) < 1e-6"
json day.json 'all(abs(low - 100 / 60) < 1e-6 or low > 2 for _, low, _ in d["variation"]["points"])'
# The times are those of points, and a step that is asked for has them, too.
json day.json '[p[0] for p in d["variation"]["points"]] == [p[0] for p in d["series"][0]["points"]]'
get "/api/v1/timeseries?$day&step=3600" >hours.json
json hours.json "len(d['series'][0]['points']) == 2 and abs(max($highs) - 220 / 60) < 1e-6"
# One piece is all there is of a step that is as short.
get "/api/v1/timeseries?$day&step=60" >minutes.json
json minutes.json '"variation" not in d'
for hours in 1 6 24 168 720; do
    get "/api/v1/timeseries?query=samples&from=$((start - hours * 3600 + 7200))&to=$((start + 7200))" >range.json
    json range.json "$hours * 3600 / d['step_seconds'] >= 300"
done
stop_server
