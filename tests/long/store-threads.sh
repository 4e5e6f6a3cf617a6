# SPDX-License-Identifier: Apache-2.0
# The store's suite, and its writers, readers and housekeeping at once, under ThreadSanitizer.
command -v setarch >/dev/null || { echo "There is no setarch here, which ThreadSanitizer wants."; exit 77; }
options=(-D_GNU_SOURCE -std=gnu17 -g -O1 -fno-strict-aliasing -fsanitize=thread -I"$ROOT/src" -I"$ROOT/tests/unit")
gcc "${options[@]}" "$ROOT/tests/unit/test_store.c" "$ROOT"/src/{base,config,profile,label,store}/*.c \
    -o test_store -lcmocka -lsqlite3 -lzstd -lxxhash -lpcre2-8 -lyaml -lm -lpthread
# Its shadow memory and a randomised address space don't always get along.
setarch -R ./test_store
