# SPDX-License-Identifier: Apache-2.0
# What a series' type is, as labels: Pyroscope has them on every series, profilecli prints them, and
# selectors may name them.
. "$ROOT/tests/server/common.bash"
type jq >/dev/null || { echo "jq is missing."; exit 77; }

start_server memory --in-memory -c keep.yaml
python3 "$ROOT/tests/server/small_pprof.py" one.pb 1 1794700000
push one.pb 'service=shop&pod=a' >/dev/null
# Folded stacks of other types, as older clients of Pyroscope send them.
ingest() { # NAME STACKS UNITS
    printf '%s' "$2" | curl -sS --fail-with-body --data-binary @- \
        "$url/ingest?name=$1&from=1794700000&until=1794700010&format=groups&units=$3&spyName=x&sampleRate=100"
}
ingest 'cart.inuse_space%7Bpod%3Db%7D' $'main;a 5\nmain;b 7\n' bytes
ingest 'cart.alloc_objects%7Bpod%3Dc%7D' $'main;a 2\n' objects

span='"start":"1794600000000","end":"1794800000000"'
# values LABEL MATCHERS: as one line
values() { rpc LabelValues "{\"name\":\"$1\",\"matchers\":[$2],$span}" | jq -r '.names | join(" ")'; }
is() {
    if [ "$1" != "$2" ]; then
        printf 'Got    %s\nWanted %s\n' "$1" "$2" >&2
        return 1
    fi
}
types=$(values __profile_type__ '')
is "$(wc -w <<<"$types")" 3
memory=$(tr ' ' '\n' <<<"$types" | sed -n 's/^\([a-z]*\):inuse_space:.*/\1/p')
[ -n "$memory" ]
is "$(values __type__ '')" 'alloc_objects cpu inuse_space'
is "$(values __name__ '"{service_name=\"shop\"}"')" process_cpu
is "$(values __unit__ '"{service_name=\"shop\"}"')" nanoseconds
is "$(values __period_type__ '"{service_name=\"shop\"}"')" cpu
is "$(values __period_unit__ '"{service_name=\"shop\"}"')" nanoseconds
is "$(values __service_name__ '')" 'cart shop'
is "$(values pod '"{__name__=\"process_cpu\"}"')" a
is "$(values pod '"{__type__=~\"inuse_space|cpu\"}"')" 'a b'
is "$(values pod '"{__type__!=\"cpu\"}"')" 'b c'
is "$(values pod '"{__type__!=\"cpu\"}","{__service_name__=\"shop\"}"')" ''
is "$(values pod '"{__name__=\"nothing\"}"')" ''
is "$(values __type__ '"{__unit__=\"nanoseconds\"}"')" cpu
is "$(rpc LabelNames "{\"matchers\":[\"{__name__=\\\"$memory\\\"}\"],$span}" | jq -r '.names | join(" ")')" \
    '__name__ __period_type__ __period_unit__ __profile_type__ __service_name__ __type__ __unit__ pod pyroscope_spy service_name'

series=$(rpc Series "{\"matchers\":[\"{pod=\\\"a\\\"}\"],$span}")
is "$(jq -r '.labelsSet[] | [.labels[] | "\(.name)=\(.value)"] | join(" ")' <<<"$series")" \
    "__name__=process_cpu __period_type__=cpu __period_unit__=nanoseconds __profile_type__=$cpu __service_name__=shop __type__=cpu __unit__=nanoseconds pod=a service_name=shop"
series=$(rpc Series "{\"matchers\":[\"{__type__=~\\\"cpu|inuse_space\\\"}\"],\"labelNames\":[\"__type__\",\"pod\"],$span}")
is "$(jq -r '[.labelsSet[] | [.labels[].value] | join(":")] | sort | join(" ")' <<<"$series")" 'cpu:a inuse_space:b'

# Where there is a type already, they hold or there is nothing.
total() { # SELECTOR
    rpc SelectMergeStacktraces "{\"profileTypeID\":\"$cpu\",\"labelSelector\":\"$1\",$span}" | jq -r .flamegraph.total
}
is "$(total '{__name__=\"process_cpu\",pod=\"a\"}')" 100
is "$(total "{__profile_type__=\\\"$cpu\\\"}")" 100
is "$(total '{__name__!=\"process_cpu\"}')" 0
is "$(total '{__unit__=~\"bytes|count\"}')" 0
points=$(rpc SelectSeries "{\"profileTypeID\":\"$cpu\",\"labelSelector\":\"{}\",$span,\"step\":100000,\"groupBy\":[\"__name__\",\"pod\"]}")
is "$(jq -r '[.series[].labels[] | "\(.name)=\(.value)"] | join(" ")' <<<"$points")" '__name__=process_cpu pod=a'
status 400 -H 'Content-Type: application/json' -d "{\"name\":\"pod\",\"matchers\":[\"{pod=\\\"a\\\"}\",\"{__name__=~\\\"(\\\"}\"],$span}" \
    "$url/querier.v1.QuerierService/LabelValues"
stop_server
