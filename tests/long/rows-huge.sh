# SPDX-License-Identifier: Apache-2.0
# Compiling the rows of a huge binary holds twice the result at most, and no more of the unwind
# information than a window: on a made one, and on real ones where they are.
python3 "$ROOT/tests/long/make_huge.py" made
slack_kib=4096 # the window of 1 MiB, the file's headers, the table of rules, pages of the program
for file in made /usr/lib/chromium/chromium /usr/lib/*/libLLVM-*.so.1 /usr/lib/*/libclang-cpp.so.*; do
    [ -f "$file" ] || continue
    # Filling memory on allocation, as test runners ask for, makes all of it resident.
    figures=$(env -u MALLOC_PERTURB_ "$MEASURE_ROWS" "$file")
    read -r rows result_kib peak_kib <<<"$figures"
    echo "$file: $rows rows, $result_kib KiB, $peak_kib KiB at most"
    [ "$rows" -gt 1000 ] || { echo "$file has too few rows."; exit 1; }
    [ "$peak_kib" -le $((2 * result_kib + slack_kib)) ] || { echo "That is too much."; exit 1; }
done
