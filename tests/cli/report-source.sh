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
from protobuf import field, varint
strings = ["", "cpu", "nanoseconds", "hot", os.path.abspath("source.c")]
out = field(1, field(1, 1) + field(2, 2))
for location, value in ((1, 7000000), (2, 3000000)):
    out += field(2, field(1, varint(location)) + field(2, varint(value)))
for location, line in ((1, 5), (2, 6)):
    out += field(4, field(1, location) + field(4, field(1, 1) + field(2, line)))
out += field(5, field(1, 1) + field(2, 3) + field(4, 4))
for text in strings: out += field(6, text.encode())
sys.stdout.buffer.write(out)
END
PYTHONPATH="$ROOT/tests/server" python3 profile.py >hot.pb
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
