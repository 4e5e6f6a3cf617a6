#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What we call addresses of Go programs, by the table that Go's own runtime uses, against what that
# runtime says: functions, files, lines and inlined calls, in stripped programs too.
# Toolchains: go

command -v go >/dev/null || {
    echo "There is no Go toolchain here to compare with."
    exit 77
}
# Nothing is downloaded: the program uses the standard library only.
export GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local CGO_ENABLED=0
work=$PWD
# The flag that lets a program use what only runtime/pprof should; before Go 1.23 there is none.
build() { # NAME ARGUMENT...
    (cd "$ROOT/tests/peers/gostacks" &&
        { go build -ldflags="-checklinkname=0 $2" "${@:3}" -o "$work/$1" . 2>/dev/null ||
            go build -ldflags="$2" "${@:3}" -o "$work/$1" .; })
}

build whole ""
build stripped "-s -w"
build independent "-s -w" -buildmode=pie
command -v gcc >/dev/null && CGO_ENABLED=1 build mixed "-s -w -linkmode=external" -buildmode=pie
for program in whole stripped independent mixed; do
    [ -e "$program" ] || continue
    "./$program" addresses 23 >addresses.txt
    "./$program" frames <addresses.txt >go.txt
    "$DUMP_SYMBOLS" --frames "$program" <addresses.txt >ours.txt
    python3 "$ROOT/tests/peers/compare_go.py" names ours.txt go.txt
done

# Programs of other versions can't be asked: by the tool.
addr2line=$(go tool -n addr2line 2>/dev/null) || exit 0
for program in whole ${ASSAY_DATA:+"$ASSAY_DATA"/elf/go-*}; do
    [ -e "$program" ] || continue
    read -r start size < <(readelf -SW "$program" |
        sed -n 's/.* \.text *PROGBITS *\([0-9a-f]*\) [0-9a-f]* \([0-9a-f]*\) .*/\1 \2/p')
    for ((address = 0x$start; address < 0x$start + 0x$size; address += 101)); do
        printf '%x\n' "$address"
    done >addresses.txt
    "$addr2line" "$program" <addresses.txt >go.txt
    "$DUMP_SYMBOLS" --frames "$program" <addresses.txt >ours.txt
    python3 "$ROOT/tests/peers/compare_go.py" ends ours.txt go.txt
done
