# SPDX-License-Identifier: Apache-2.0
# Input-sized allocations fail while unwind rows and symbols of files are read, twice and more: the
# file is left out, and the program goes on.
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$ROOT/tests/faults"
libc=$(ldd "$ASSAY" | sed -n 's/.*libc\.so\.6 => \([^ ]*\).*/\1/p')
python3 "$ROOT/tests/faults/files.py" 40 "$ASSAY" "$libc"
