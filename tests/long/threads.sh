# SPDX-License-Identifier: Apache-2.0
# What runs on several threads, under ThreadSanitizer, which needs a build of its own.
command -v setarch >/dev/null || { echo "There is no setarch here, which ThreadSanitizer wants."; exit 77; }
options=(-D_GNU_SOURCE '-DASSAY_VERSION="test"' -std=gnu17 -g -O1 -fsanitize=thread -I"$ROOT/src")
libraries=(-lcmocka -lisal -ldeflate -lzstd -lxxhash -lpcre2-8 -lm -lpthread)
cat >page.c <<'END'
#include "format/picture/page.h"
const unsigned char flame_page[] = "";
const size_t flame_page_length = 0;
END
objects=()
for file in page.c "$ROOT"/src/{base,profile,format}/*.c; do
    object=$(basename "$(dirname "$file")")-$(basename "$file").o
    gcc "${options[@]}" -c "$file" -o "$object"
    objects+=("$object")
done
gcc "${options[@]}" -I"$ROOT/tests/unit" "$ROOT/tests/unit/test_pprof.c" "${objects[@]}" -o test_pprof "${libraries[@]}"
# Its shadow memory and a randomised address space don't always get along.
setarch -R ./test_pprof
