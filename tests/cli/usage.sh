# SPDX-License-Identifier: Apache-2.0
# Exit codes: 0 fine, 1 failed, 2 wrong usage; errors go to stderr and say what to do.
try() {
    local status=0
    echo "\$ assay $*"
    "$ASSAY" "$@" >out 2>err || status=$?
    [ ! -s out ] || echo "(prints $(wc -l <out | tr -d ' ') lines)"
    sed "s|$FIXTURES|FIXTURES|g" err
    echo "-> $status"
}
in=$FIXTURES/pprof/recursion.pb.gz
"$ASSAY" >out 2>err || echo "without a command: $?"; head -1 err
try frobnicate
try --version
try report
try report --frobnicate "$in" | sed "s|$in|IN|"
try report --top many "$in" | sed "s|$in|IN|"
try report --format xml "$in" | sed "s|$in|IN|"
try report --tree --callers main "$in" | sed "s|$in|IN|"
try report --focus '(' "$in" | sed "s|$in|IN|"
try report --sample-type heap "$in" | sed "s|$in|IN|"
try report --callers nobody "$in" | sed "s|$in|IN|"
try report /nowhere/file
try report --input-format nothing "$in" | sed "s|$in|IN|"
try report --max-expand lots "$in" | sed "s|$in|IN|"
try convert "$in" | sed "s|$in|IN|"
try convert "$in" -o x.unknown | sed "s|$in|IN|"
try convert "$in" -o /nowhere/x.pb | sed "s|$in|IN|"
try convert "$in" "$in" -o x.pb | sed "s|$in|IN|g"
try flame "$in" -o x.pb | sed "s|$in|IN|"
try diff "$in" | sed "s|$in|IN|"
try diff --normalize size "$in" "$in" | sed "s|$in|IN|g"
: >empty
try report empty
printf 'neither this nor that' >text
try report text
echo "== nothing was written"; ls
# Words that are nearly right, and directories of other tools.
try reprot
try convert "$in" --to foldd -o - | sed "s|$in|IN|"
try info --input-format perfdata "$in" | sed "s|$in|IN|"
try record -e page-fault -- true
mkdir plain threads cpu.trace hotspots
touch threads/data.0 hotspots/hotspots.vtune
mkdir cpu.trace/Trace1.run
for folder in plain threads cpu.trace hotspots; do
    try report "$folder"
done
