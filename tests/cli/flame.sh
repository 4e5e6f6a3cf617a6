# SPDX-License-Identifier: Apache-2.0
# Pictures are well-formed, hold every type (page) or one (picture), and name nothing from a network.
in=$FIXTURES/pprof/cpu-labels.pb.gz
"$ASSAY" flame "$in" -o x.svg
python3 -c "
import xml.dom.minidom as m
d = m.parse('x.svg')
print(d.documentElement.tagName, len(d.getElementsByTagName('title')) > 10)"
"$ASSAY" flame "$in" -o x.html --title 'A <title> & more'
python3 - <<'END'
import json, re
page = open('x.html').read()
data = json.loads(re.search(r'<script type="application/json" id="flame-data">(.*?)</script>', page, re.S).group(1))
print(data['version'], data['kind'], data['title'], [t['name'] for t in data['types']], data['default_type'])
print('sum of self is the total:', sum(data['self'][0]))
outside = [u for u in re.findall(r'(?:src|href)\s*=\s*["\']?(https?:[^"\'> ]+)', page)]
print('from the network:', outside)
END
"$ASSAY" info --format json "$in" | jq '.types[0].total'
echo "== hostile names stay text"
printf 'main;<script>alert(1)</script>;"&\x27 5\nmain;\x1b[31mred 1\n' >bad.folded
"$ASSAY" flame bad.folded -o bad.html && grep -c '<script>alert' bad.html || true
"$ASSAY" flame bad.folded -o bad.svg && grep -c '<script' bad.svg || true
python3 -c "import xml.dom.minidom as m; m.parse('bad.svg')" && echo well-formed
echo "== filters"
"$ASSAY" flame --focus nothing-at-all "$in" -o empty.svg && "$ASSAY" flame --focus nothing-at-all "$in" -o empty.html && ls empty.*
echo "== states of threads, of the type that is shown"
for type in wall wall_samples; do
    "$ASSAY" flame "$FIXTURES/jfr/wall.jfr" --sample-type $type -o states.html
    python3 - <<'END'
import json, re
data = json.loads(re.search(r'id="flame-data">(.*?)</script>', open('states.html').read(), re.S).group(1))
states = data['states']
print(data['types'][data['default_type']]['name'], sum(data['self'][data['default_type']]),
      {name: sum(self) for name, self in zip(states['names'], states['self'])})
END
done
"$ASSAY" flame --tag state=STATE_SLEEPING "$FIXTURES/jfr/wall.jfr" -o one.html && grep -o '"names":\["STATE[^]]*\]' one.html
"$ASSAY" flame "$in" -o none.html && grep -c '^"states"' none.html || true

# A page has the whole tree of a large profile, so that it can add up any part of it.
python3 -c '
for stack in range(2200):
    print(";".join([f"root{stack}"] + ["f", "g"] * 250), stack + 1)' >large.folded
"$ASSAY" flame large.folded -o large.html
python3 - <<'PY'
import json, re
data = json.loads(re.search(r'id="flame-data">(.*?)</script>', open("large.html").read(), re.S).group(1))
print(len(data["nodes"]["up"]), data["cut"], data["dropped"])
PY
