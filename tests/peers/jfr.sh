#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# assay and the JDK's own `jfr` must agree on a fresh recording of two chunks and, when $ASSAY_DATA
# is set, on the files in its jfr directory: counts, bytes and nanoseconds of each kind of event, by
# whole stack and by thread.

peers=$ROOT/tests/peers

for program in java javac jfr; do
    command -v "$program" >/dev/null || {
        echo "There is no $program here: install a JDK (11 or later) to compare with."
        exit 77
    }
done

javac -encoding UTF-8 -d . "$peers/jfrload/Load.java"
java -Xmx256m -Xlog:disable -Xlog:all=error:stderr \
    -XX:StartFlightRecording=settings="$peers/jfrload/settings.jfc",filename=fresh.jfr,dumponexit=true \
    -cp . Load 4000 >/dev/null

chunks=$(jfr summary fresh.jfr | sed -n 's/^ *Chunks: //p')
[ "$chunks" -ge 2 ] || {
    echo "The recording has $chunks chunks where two were wanted."
    exit 1
}
gzip -k fresh.jfr
cmp <("$ASSAY" convert fresh.jfr --to folded -o -) <("$ASSAY" convert fresh.jfr.gz --to folded -o -)

files=(fresh.jfr)
if [ -n "${ASSAY_DATA:-}" ]; then
    for file in "$ASSAY_DATA"/jfr/*; do
        name=$(basename "$file" .gz)
        case $file in
        *.gz) gzip -dc "$file" >"$name" ;;
        *) cp "$file" "$name" ;;
        esac
        files+=("$name")
    done
fi
python3 "$peers/compare_jfr.py" --expect-all fresh.jfr "${files[@]}"
