# SPDX-License-Identifier: Apache-2.0
# What a Pyroscope server makes of its clients' pushes, type by type and label by label: what is
# wanted here is what one of version 2 had stored after requests of the same form.
. "$ROOT/tests/server/common.bash"

start_server memory --in-memory -c keep.yaml
when='from=1794700000&until=1794700010'
selector() { printf '%%7Bservice_name%%3D%%22%s%%22%%7D' "$1"; }
# The types of a service, and the labels of its series without those.
types() {
    get "/api/v1/series?query=$(selector "$1")&$always" | python3 -c 'import json, sys
print(*sorted({s["labels"].get("__profile_type__") or s["type"] for s in json.load(sys.stdin)}))'
}
labels() {
    get "/api/v1/series?query=$(selector "$1")&$always" | python3 -c 'import json, sys
print(*sorted({",".join(f"{k}={v}" for k, v in sorted(s["labels"].items())
                        if k not in ("service_name", "__profile_type__")) for s in json.load(sys.stdin)}))'
}
folded() { get "/api/v1/flame?query=$1$(selector "$2")&$always&format=folded" | sort; }
same() { # WANTED GOT
    [ "$1" = "$2" ] || { printf 'wanted: %s\ngot:    %s\n' "$1" "$2" >&2; exit 1; }
}

# The end of an application's name tells the type of what has none.
printf 'main;run 3\nmain;rest 2\n' >groups.txt
while read -r suffix type sum; do
    status 200 --data-binary @groups.txt "$url/ingest?name=of.$suffix&$when&sampleRate=50&format=folded"
    same "$type $sum" "$type $(folded "$type" of | awk '{sum += $NF} END {print sum}')"
done <<'END'
wall wall:wall:nanoseconds:cpu:nanoseconds 100000000
itimer process_cpu:cpu:nanoseconds:cpu:nanoseconds 100000000
inuse_space memory:inuse_space:bytes:: 5
alloc_objects memory:alloc_objects:count:: 5
alloc_in_new_tlab_bytes memory:alloc_in_new_tlab_bytes:bytes:: 5
goroutines goroutine:goroutines:count:: 5
mutex_duration mutex:delay:nanoseconds:: 5
lock_count block:contentions:count:: 5
exceptions exceptions:samples:count:: 5
END
# A service that is named by a label keeps the application's name as another.
status 200 --data-binary @groups.txt "$url/ingest?name=app.cpu%7Bservice_name%3Dshop%7D&$when&format=collapsed"
same app_name=app "$(labels shop)"

# Speedscope's times are what the name says, in their own unit; what is only counted is samples.
for unit in milliseconds none; do
    printf '{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"main"}]},"profiles":[{"type":"sampled","name":"x","unit":"%s","startValue":0,"endValue":5,"samples":[[0]],"weights":[5]}]}' $unit >scope.json
    status 200 --data-binary @scope.json "$url/ingest?name=scope-$unit&$when&format=speedscope"
    same "$cpu" "$(types scope-$unit)"
done
same 'main 5000000' "$(folded "$cpu" scope-milliseconds)"
same 'main 50000000' "$(folded "$cpu" scope-none)"

# profile.py OUT TYPE,UNIT... [LABEL=VALUE]...: two samples, the labels are the first one's.
cat >profile.py <<'PYTHON'
import sys
from protobuf import field, varint
strings = [""]
def text(value):
    if value not in strings:
        strings.append(value)
    return strings.index(value)
types = [a.split(",") for a in sys.argv[2:] if "=" not in a]
pairs = [a.split("=") for a in sys.argv[2:] if "=" in a]
out = b"".join(field(1, field(1, text(t)) + field(2, text(u))) for t, u in types)
for n, labels in ((3, pairs), (2, [])):
    values = field(2, b"".join(varint(n * 10 ** i) for i in range(len(types))))
    out += field(2, field(1, varint(n)) + values + b"".join(field(3, field(1, text(k)) + field(2, text(v))) for k, v in labels))
files = dict(pairs).get("file")
for i, name, file in ((2, "rest", "app.py"), (3, "run", files)):
    out += field(4, field(1, i) + field(4, field(1, i))) + field(5, field(1, i) + field(2, text(name)) + (field(4, text(file)) if files else b""))
open(sys.argv[1], "wb").write(out + field(9, 1794700000 * 10**9) + field(10, 10**10) + b"".join(field(6, s) for s in strings))
PYTHON

# A profile is called by what its types have in their names, or by the last of them.
while read -r service wanted; do
    mapfile -t list < <(tr ' ' '\n' <<<"$wanted" | awk -F: '{print $2 "," $3}')
    python3 profile.py types.pb "${list[@]}"
    status 200 --data-binary @types.pb "$url/ingest?name=$service&$when&format=pprof"
    same "$wanted" "$(types "$service")"
done <<'END'
allocated memory:alloc_samples:count:: memory:alloc_size:bytes::
locked lock_time:lock_count:count:: lock_time:lock_time:nanoseconds::
sampled process_cpu:samples:count:: process_cpu:time:nanoseconds::
thrown exception:exception:count::
heaped memory:objects:count:: memory:space:bytes::
END

# .NET's old client writes types with dashes; those for Python and Ruby mean names with files.
python3 profile.py dashed.pb inuse-objects,count inuse-space,bytes
status 200 --data-binary @dashed.pb "$url/ingest?name=dotnet&$when&format=pprof&spyName=dotnetspy"
same 'memory:inuse_objects:count:: memory:inuse_space:bytes::' "$(types dotnet)"
python3 profile.py script.pb cpu,nanoseconds file=/lib/run.py
for spy in pyspy rbspy nodespy; do
    status 200 --data-binary @script.pb "$url/ingest?name=$spy&$when&format=pprof&spyName=$spy"
done
same $'app.py rest 2\nrun 3' "$(folded process_cpu:cpu:nanoseconds:: pyspy)"
same $'/lib/run.py run 3\napp.py rest 2' "$(folded process_cpu:cpu:nanoseconds:: rbspy)"
same $'rest 2\nrun 3' "$(folded process_cpu:cpu:nanoseconds:: nodespy)"

# The sender's labels hold against those of samples, in whatever order; names stay as they are.
python3 profile.py labelled.pb cpu,nanoseconds region=us service_name=other service.name=y path=/a
status 200 --data-binary @labelled.pb "$url/ingest?name=labelled%7Bregion%3Deu%7D&$when&format=pprof"
same 'path=/a,region=eu,service.name=y region=eu' "$(labels labelled)"
same $'rest 2\nrun 3' "$(folded process_cpu:cpu:nanoseconds:: labelled)"
same '' "$(types other)$(types y)"

# Nothing to send is no error, nor is a configuration that says nothing.
: >nothing
status 200 -F profile=@nothing "$url/ingest?name=none&$when"
status 200 --data-binary @nothing "$url/ingest?name=none&$when&format=pprof"
same '' "$(types none)"
for config in '' null '{"cpu":null}'; do
    status 200 -F profile=@labelled.pb -F "sample_type_config=$config" -F prev_profile=@nothing "$url/ingest?name=configured&$when"
done

# A recording is a profile of each kind, whose threads and classes make no series; what differs in
# the names of generated classes from run to run isn't kept.
status 200 -F jfr=@"$FIXTURES/jfr/async.jfr" "$url/ingest?name=app%7Bservice_name%3Djava%7D&format=jfr&spyName=javaspy"
same "memory:live:count:objects:count memory:live_bytes:bytes:objects:count memory:malloc_bytes:bytes:: memory:malloc_objects:count:: $cpu wall:wall:nanoseconds:wall:nanoseconds" "$(types java)"
same 'app_name=app,pyroscope_spy=javaspy app_name=app,pyroscope_spy=javaspy,span_name=GET / app_name=app,pyroscope_spy=javaspy,span_name=inline' "$(labels java)"
# Of threads that are sampled by the wall clock only, those that ran have used a CPU.
status 200 -F jfr=@"$FIXTURES/jfr/wall.jfr" "$url/ingest?name=wall&format=jfr"
same "$cpu wall:wall:nanoseconds:wall:nanoseconds" "$(types wall)"
sum() { folded "$1" wall | awk '{sum += $NF} END {print sum}'; }
same '150000000 100000000' "$(sum wall) $(sum cpu)"

# push.py OUT NAME SERVICE PROFILE ID
cat >push.py <<'PYTHON'
import sys
from protobuf import field
out, name, service, profile, id = sys.argv[1:]
pairs = {"__name__": name, "service_name": service}
labels = b"".join(field(1, field(1, k) + field(2, v)) for k, v in pairs.items())
open(out, "wb").write(field(1, labels + field(2, field(1, open(profile, "rb").read()) + (field(2, id) if id else b""))))
PYTHON
pushed() {
    python3 push.py push.bin "$1" "$2" "$3" "$4"
    status 200 -H 'Content-Type: application/proto' --data-binary @push.bin "$url/push.v1.PusherService/Push"
}
# What Go's delta profiler made are differences already, and is called as what they are of.
python3 profile.py heap.pb alloc_objects,count alloc_space,bytes
for id in 1 2; do pushed godeltaprof_memory delta heap.pb $id; done
same 'memory:alloc_objects:count:: memory:alloc_space:bytes::' "$(types delta)"
same $'rest 40\nrun 60' "$(folded alloc_space delta)"
# A file that profilecli uploads has none before it.
python3 push.py push.bin memory file heap.pb 1
status 200 -A pyroscope/2.2 -H 'Content-Type: application/proto' --data-binary @push.bin "$url/push.v1.PusherService/Push"
same $'rest 20\nrun 30' "$(folded alloc_space file)"
# The same message with the same ids, sent again as no answer was seen, changes nothing; without
# ids it is another.
for id in a a b ''; do pushed process_cpu repeated labelled.pb "$id"; done
pushed process_cpu repeated labelled.pb ''
same $'rest 8\nrun 12' "$(folded process_cpu:cpu:nanoseconds:: repeated)"
stop_server
