#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Bad pprof files: exit status 1, one sentence that names the file and the place, nothing written.
# Files that expand or multiply beyond reason are refused within small memory.

make="python3 $FIXTURES/pprof/generate.py"
failures=0

complain() {
    echo "$1"
    failures=$((failures + 1))
}

# refuses FILE COMMAND...: what is said must be one line with the file's name and a full stop.
refuses() {
    local file=$1 status=0
    shift
    rm -rf out && mkdir out
    timeout 60 "$@" >stdout 2>stderr || status=$?
    [ "$status" -eq 1 ] || complain "$*: exit status $status instead of 1: $(head -c 300 stderr)"
    [ ! -s stdout ] || complain "$*: prints something: $(head -c 300 stdout)"
    [ "$(wc -l <stderr)" -eq 1 ] || complain "$*: says more or less than a line: $(cat stderr)"
    grep -qF "$file" stderr || complain "$*: does not name the file: $(cat stderr)"
    grep -q '\.$' stderr || complain "$*: says no complete sentence: $(cat stderr)"
    [ -z "$(ls -A out)" ] || complain "$*: leaves $(ls -A out)"
}

place='offset [0-9]+|compressed byte|(Location|Function) (number )?[0-9]+|string table'
count=0
for file in "$FIXTURES"/pprof/bad/*; do
    refuses "$file" "$ASSAY" info "$file"
    grep -qE "$place" stderr ||
        complain "$file: does not say where: $(cat stderr)"
    refuses "$file" "$ASSAY" convert "$file" -o out/x.pb.gz
    refuses "$file" "$ASSAY" merge "$FIXTURES/pprof/packed.pb.gz" "$file" -o out/x.pb.gz
    count=$((count + 1))
    # Labels are not even looked at where none are needed.
    [[ $file != */label-* ]] || continue
    refuses "$file" "$ASSAY" report "$file"
    refuses "$file" "$ASSAY" flame "$file" -o out/x.html
    refuses "$file" "$ASSAY" diff "$FIXTURES/pprof/packed.pb.gz" "$file"
done
[ "$count" -ge 20 ] || complain "Only $count bad files were found."

# A failed conversion leaves what was there before as it was.
mkdir -p out && echo before >out/x.pb.gz
if "$ASSAY" convert "$FIXTURES/pprof/bad/cut-gzip.pb.gz" -o out/x.pb.gz 2>/dev/null; then
    complain "Half a file is converted."
fi
[ "$(cat out/x.pb.gz)" = before ] || complain "A failed conversion changed the file that was there."
[ "$(ls -A out)" = x.pb.gz ] || complain "A failed conversion left $(ls -A out)."

# No samples is no error.
empty=$FIXTURES/pprof/empty.pb.gz
"$ASSAY" report "$empty" --format json >empty.json
jq -e '.total == 0 and (.rows | length) == 0 and .type == "cpu"' empty.json >/dev/null ||
    complain "The empty profile gives $(cat empty.json)"
header=flat,flat_percent,cum,cum_percent,function,file,binary
[ "$("$ASSAY" report "$empty" --format csv)" = "$header" ] ||
    complain "The empty profile's CSV is more than its header."
"$ASSAY" info "$empty" --format json |
    jq -e '.samples == 0 and (.types | length) == 2' >/dev/null ||
    complain "The empty profile has samples."
mkdir -p empty
for name in x.pb.gz x.html x.svg; do
    "$ASSAY" convert "$empty" -o "empty/$name" ||
        complain "The empty profile is not converted to $name."
done
"$ASSAY" report empty/x.pb.gz >/dev/null || complain "The empty profile is not read again."

# What is odd but allowed: names that are no UTF-8, or that would steer a terminal.
"$ASSAY" report "$FIXTURES/pprof/odd-names.pb.gz" >odd.txt
iconv -f UTF-8 -t UTF-8 odd.txt >/dev/null || complain "The report is no UTF-8."
if grep -q $'\x1b' odd.txt; then complain "An escape sequence of a name reaches the terminal."; fi
"$ASSAY" report "$FIXTURES/pprof/odd-names.pb.gz" --format json | jq -e . >/dev/null ||
    complain "Odd names are no JSON."

# Bombs. 512 MiB of address space is what a refusal may take; the address sanitizer needs more.
# shellcheck disable=SC2016 # the inner shell expands it
small=(bash -c 'ulimit -v 524288 && exec "$0" "$@"')
if [[ $(ldd "$ASSAY") == *libasan* ]]; then small=(env); fi
$make bomb bomb.pb.gz 256
[ "$(stat -c %s bomb.pb.gz)" -lt 400000 ] || complain "The bomb is none."
"${small[@]}" "$ASSAY" report bomb.pb.gz >/dev/null ||
    complain "Bytes that mean nothing take memory."
refuses bomb.pb.gz "$ASSAY" report --max-expand 1M bomb.pb.gz
grep -q -e --max-expand stderr || complain "The limit's option is not named: $(cat stderr)"
refuses bomb.pb.gz "$ASSAY" info --max-expand 200M bomb.pb.gz
refuses bomb.pb.gz "$ASSAY" convert --max-expand 1M bomb.pb.gz -o out/x.pb.gz
refuses bomb.pb.gz "$ASSAY" merge --max-expand 1M bomb.pb.gz -o out/x.pb.gz
refuses bomb.pb.gz "$ASSAY" flame --max-expand 1M bomb.pb.gz -o out/x.html
$make labels labels.pb.gz 1000000
refuses labels.pb.gz "${small[@]}" "$ASSAY" info labels.pb.gz
$make multiply multiply.pb.gz 100000
refuses multiply.pb.gz "${small[@]}" "$ASSAY" report multiply.pb.gz
$make comments comments.pb.gz 200000
refuses comments.pb.gz "${small[@]}" "$ASSAY" info comments.pb.gz

# Depth is no reason to fail.
$make deep deep.pb.gz 100000
"${small[@]}" "$ASSAY" report deep.pb.gz --format json |
    jq -e '.rows == [.rows[0]] and .rows[0].cum == 10000000' >/dev/null ||
    complain "A deep stack fails."
for name in x.pb.gz x.otlp x.folded x.html x.svg x.speedscope.json; do
    "$ASSAY" convert deep.pb.gz -o "deep-$name" ||
        complain "A deep stack is not converted to $name."
done

[ "$failures" -eq 0 ]
