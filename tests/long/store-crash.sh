# SPDX-License-Identifier: Apache-2.0
# The store, killed a hundred times while it writes, compacts and rolls up: see test_store_crash.c,
# which is built here as it is in the unit tests, and killed twenty times there.
options=(-D_GNU_SOURCE -std=gnu17 -g -O2 -fno-strict-aliasing -I"$ROOT/src" -I"$ROOT/tests/unit")
gcc "${options[@]}" "$ROOT/tests/unit/test_store_crash.c" "$ROOT"/src/{base,config,profile,label,store}/*.c \
    -o test_store_crash -lcmocka -lsqlite3 -lzstd -lxxhash -lpcre2-8 -lyaml -lm -lpthread
STORE_CRASH_ROUNDS=100 ./test_store_crash
