# SPDX-License-Identifier: Apache-2.0
# Ids of spans on samples: what libassay publishes is what samples have, by each way of access to
# the thread-local variable.
# Chance: shares of samples are estimates.
. "$ROOT/tests/capture/common.bash"
need gcc python3
[[ " ${samplers[*]} " == *" bpf "* ]] || skip_all "Contexts of threads are read by BPF, which cannot be used here."
export ASSAY_SAMPLER=bpf

sources=("$ROOT/sdk/c/process.c" "$ROOT/sdk/c/span.c")
flags=(-O2 -g -D_GNU_SOURCE -pthread -I"$ROOT/sdk")
export_it=-Wl,--export-dynamic-symbol=otel_thread_ctx_v1
gcc "${flags[@]}" -shared -fPIC -mtls-dialect=gnu2 -o libdescriptor.so "${sources[@]}"
gcc "${flags[@]}" -shared -fPIC -mtls-dialect=gnu -o libgeneral.so "${sources[@]}"
gcc "${flags[@]}" -shared -fPIC -ftls-model=initial-exec -o libinitial.so "${sources[@]}"
for way in descriptor general initial; do
    gcc "${flags[@]}" -o "spans-$way" "$subjects/spans.c" "./lib$way.so"
done
gcc "${flags[@]}" "$export_it" -o spans-executable "$subjects/spans.c" "${sources[@]}"
gcc "${flags[@]}" -no-pie "$export_it" -o spans-fixed "$subjects/spans.c" "${sources[@]}"
gcc "${flags[@]}" -static -o spans-static "$subjects/spans.c" "${sources[@]}"
gcc "${flags[@]}" -static-pie "$export_it" -o spans-static-pie "$subjects/spans.c" "${sources[@]}"

# The time between two spans is longer than both its edges, which are not judged.
for way in descriptor general initial executable fixed static static-pie; do
    "$ASSAY" record -F 499 -o "$way.otlp" -- "./spans-$way" 2 25 16000 >truth 2>said || cat said
    check "ids by $way" python3 "$capture/spans.py" "$way.otlp" 100 <truth
done

# Waits have them, too.
"$ASSAY" record -q -m wall -F 499 -o wall.otlp -- ./spans-descriptor 4 25 16000 >truth
check "ids of wall time" python3 "$capture/spans.py" wall.otlp 50 wall <truth

# Python, by the wrapper; and what it counts, which is read once a second.
export LIBASSAY_LIBRARY=$PWD/libdescriptor.so
PYTHONPATH=$ROOT/sdk/python/src "$ASSAY" record -F 499 -o python.otlp -- \
    python3 "$subjects/spans.py" 2 30 40000 >truth 2>said || cat said
check "ids of Python's threads" python3 "$capture/spans.py" python.otlp 100 <truth
"$ASSAY" report -t requests python.otlp >requests.txt
check "its requests" grep -E 'GET /user/\{id\}' requests.txt
