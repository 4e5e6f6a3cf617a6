#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Functions, inlined functions, files and lines by debug information, against addr2line and, where
# the two differ, llvm-symbolizer: our own programs, C++ and Rust, the C library where its debug
# information is installed, and all the ways in which debug information is kept.

for tool in addr2line llvm-symbolizer readelf objcopy strip; do
    command -v "$tool" >/dev/null || {
        echo "There is no $tool here to compare with."
        exit 77
    }
done
compare() { python3 "$ROOT/tests/peers/compare_frames.py" "$DUMP_SYMBOLS" "$@"; }

. "$ROOT/tests/peers/programs.bash"
# How many addresses of each; tests/long asks for more.
few=${ADDRESSES:-1000} some=$((${ADDRESSES:-1000} * 2))
compare "$ASSAY" "$some"
compare "$DUMP_SYMBOLS" "$few"

library=/lib/x86_64-linux-gnu/libc.so.6
if [ -e $library ]; then
    id=$(readelf -n $library | sed -n 's/.*Build ID: //p')
    debug=/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
    [ ! -e "$debug" ] || compare $library "$some" "$debug"
fi

if rustc --version >/dev/null 2>&1; then
    rustc -g -C opt-level=2 -o rust small.rs
    compare rust "$few"
fi

command -v c++ >/dev/null || exit 0
c++ -g -O2 -o whole small.cc
compare whole "$few"
c++ -gdwarf-4 -O1 -fdebug-types-section -o older small.cc
compare older "$few"
c++ -g -O2 -flto -o linked small.cc
compare linked "$few"
! command -v clang++ >/dev/null || { clang++ -g -O2 -o clang small.cc && compare clang "$few"; }

for method in zlib zstd; do
    # Not every objcopy knows every method.
    objcopy --compress-debug-sections=$method whole packed && compare packed "$few" whole
done
objcopy --only-keep-debug whole small.debug
strip -o small whole
objcopy --add-gnu-debuglink=small.debug small
compare small "$few" whole
if command -v dwz >/dev/null; then
    cp whole first
    cp whole second
    dwz -m shared -M "$PWD/shared" first second
    compare first "$few" whole
fi
