#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A real recording: assay must count what perf counts, symbol by symbol. The truth is taken twice,
# from `perf report` and, by awk, from the text itself; and the text in every shape that perf gives
# it must hold the same samples.

skip() {
    echo "$1"
    exit 77
}

command -v perf >/dev/null || skip "There is no perf here to record with."
command -v cc >/dev/null || skip "There is no compiler here to build the recorded program with."
cc -O2 -g -fno-omit-frame-pointer -pthread -o load "$ROOT/tests/peers/perfload/load.c"

perf record -q -e cpu-clock -F 999 -g -o stacks.data ./load >/dev/null 2>record.log ||
    skip "perf may not record here: $(tr '\n' ' ' <record.log)"
perf record -q -e cpu-clock -F 999 -o flat.data ./load >/dev/null

# Self counts per named symbol; addresses without a name are counted as one.
from_assay() {
    "$ASSAY" report "$1" --format csv --top 0 --sample-type samples |
        awk -F, 'NR > 1 && $1 > 0 { count[$5 ~ /(^|\+)0x[0-9a-f]+$/ ? "?" : $5] += $1 }
                 END { for (name in count) print count[name], name }' | sort
}

# The first frame of each block is where the sample was taken.
from_text() {
    awk '/^\t/ && fresh {
             name = $2; sub(/\+0x[0-9a-f]+$/, "", name)
             count[name == "[unknown]" ? "?" : name]++
         }
         { fresh = !/^\t/ && NF > 0 }
         END { for (name in count) print count[name], name }' "$1" | sort
}

from_report() {
    perf report -i "$1" --stdio --no-children --no-inline -g none -F sample,symbol 2>/dev/null |
        awk '!/^#/ && NF > 2 { count[$3 ~ /^0x/ ? "?" : $3] += $1 }
             END { for (name in count) print count[name], name }' | sort
}

same() {
    diff -u --label "$1" --label "$2" "$1" "$2" || {
        echo "assay counts other samples than $1."
        exit 1
    }
}

perf script -i stacks.data --no-inline >stacks.txt
from_assay stacks.txt >assay.stacks
from_text stacks.txt >awk.stacks
from_report stacks.data >report.stacks
[ "$(awk '{ sum += $1 } END { print sum }' assay.stacks)" -gt 10 ]
same awk.stacks assay.stacks
same report.stacks assay.stacks

perf script -i flat.data --no-inline >flat.txt
from_assay flat.txt >assay.flat
from_report flat.data >report.flat
same report.flat assay.flat

# The same recording with other fields has the same counts.
shapes=(
    "-F comm,pid,tid,time,period,event,ip,sym,symoff,dso"
    "-F comm,tid,event,ip,sym"
    "-F -period"
    "-F -time"
    "-F -event"
    "-F +srcline"
    "-F +misc"
    "--ns --header"
    "--show-mmap-events --show-task-events --show-lost-events"
)
for shape in "${shapes[@]}"; do
    # shellcheck disable=SC2086 # each shape is several arguments
    perf script -i stacks.data --no-inline $shape >shape.txt 2>/dev/null || continue
    from_assay shape.txt >"assay.shape"
    cmp -s assay.stacks assay.shape || {
        echo "perf script $shape:"
        same assay.stacks assay.shape
    }
done

# CPU time is samples times the period, and everything is in it.
total=$("$ASSAY" report stacks.txt --format csv --top 0 --sample-type cpu |
    awk -F, 'NR > 1 { sum += $1 } END { printf "%d", sum }')
expected=$(awk '/cpu-clock/ { for (i = 1; i < NF; i++) if ($(i + 1) ~ /^cpu-clock[:a-zA-Z]*:$/) sum += $i }
                END { printf "%d", sum }' stacks.txt)
[ "$total" = "$expected" ] || {
    echo "assay finds $total ns of CPU time, the text has $expected."
    exit 1
}
