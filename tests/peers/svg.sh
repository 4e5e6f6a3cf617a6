#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Pictures must be well-formed for a parser that is not ours, whatever the names are, and the data in
# the page must be JSON.

command -v python3 >/dev/null || {
    echo "There is no Python here to parse XML with."
    exit 77
}

python3 - <<'PYTHON'
import itertools
names = [b'</script><b>', b'"\'&<>]]>', b'\xff\xfe\x80', b'\x01\x1b[31m\x7f', b'\xef\xbf\xbf',
         b'\xed\xa0\x80', '検索🔥'.encode(), b'std::map<int, char>::find(int) const', b'<!--', b'-->',
         b'&amp;', b'\\u003c', b'__proto__']
with open('hostile.folded', 'wb') as out:
    for n, (a, b) in enumerate(itertools.product(names, names)):
        out.write(b'main;' + a + b';' + b + b';' + a + b' %d\n' % (n * 37 % 101 + 1))
with open('base.folded', 'wb') as out:
    for n, a in enumerate(names):
        out.write(b'main;' + a + a + b' %d\n' % (n + 1))
PYTHON

"$ASSAY" flame hostile.folded -o flame.svg --title '<"&'\''>'
"$ASSAY" flame hostile.folded -o flame.html --title '</title>'
"$ASSAY" diff base.folded hostile.folded -o diff.svg
"$ASSAY" diff base.folded hostile.folded -o diff.html
for file in "$FIXTURES"/folded/*.folded "$FIXTURES"/perf-script/*.txt; do
    "$ASSAY" flame "$file" -o "$(basename "$file").svg"
done

python3 - *.svg <<'PYTHON'
import json, re, sys
import xml.dom.minidom
for path in sys.argv[1:]:
    document = xml.dom.minidom.parse(path)
    assert document.documentElement.tagName == 'svg', path
    assert document.getElementsByTagName('rect'), path
    assert not document.getElementsByTagName('script'), path
for path in ('flame.html', 'diff.html'):
    page = open(path, encoding='utf-8').read()
    data = re.search(r'<script type="application/json" id="flame-data">([^<]*)</script>', page)
    flame = json.loads(data.group(1))
    nodes = len(flame['nodes']['up'])
    assert len(flame['nodes']['function']) == nodes
    assert all(len(column) == nodes + 1 for column in flame['self'] + flame.get('base', []))
    assert all(1 <= up <= i + 1 for i, up in enumerate(flame['nodes']['up']))
PYTHON
