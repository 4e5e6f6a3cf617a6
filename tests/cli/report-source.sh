# SPDX-License-Identifier: Apache-2.0
# `report --lines` shows the source where the profile's path can be read.
cat >source.c <<'END'
#include <math.h>

static double hot(double x)
{
	double y = sqrt(x);
	return y * y;
}
END
cat >profile.py <<'END'
import os, sys
def varint(n):
    out = b""
    while n > 127: out += bytes([n & 127 | 128]); n >>= 7
    return out + bytes([n])
def number(f, v): return varint(f << 3) + varint(v)
def message(f, b): return varint(f << 3 | 2) + varint(len(b)) + b
strings = ["", "cpu", "nanoseconds", "hot", os.path.abspath("source.c")]
out = message(1, number(1, 1) + number(2, 2))
for location, value in ((1, 7000000), (2, 3000000)):
    out += message(2, message(1, varint(location)) + message(2, varint(value)))
for location, line in ((1, 5), (2, 6)):
    out += message(4, number(1, location) + message(4, number(1, 1) + number(2, line)))
out += message(5, number(1, 1) + number(2, 3) + number(4, 4))
for text in strings: out += message(6, text.encode())
sys.stdout.buffer.write(out)
END
python3 profile.py >hot.pb
show() { "$ASSAY" report --lines hot "$@" hot.pb | sed "s|$PWD|HERE|"; }
show
echo "== not here"
mkdir -p elsewhere/deep
mv source.c elsewhere/deep/
show
echo "== found by the end of its path"
show --source-path nowhere --source-path elsewhere/deep
echo "== another version"
head -n 4 elsewhere/deep/source.c >source.c
show
echo "== empty, a folder, a pipe"
: >source.c
show | sed -n 2p
rm source.c && mkdir source.c
show | sed -n 2p
rmdir source.c && mkfifo source.c
show | sed -n 2p
echo "== no server to ask, and no build to ask for"
show --debuginfod http://127.0.0.1:1 | sed -n 2p
echo "== as data"
"$ASSAY" report --lines hot --format json --source-path elsewhere/deep hot.pb | jq -c '.rows[] | [.line, .source]'
