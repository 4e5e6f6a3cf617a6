# SPDX-License-Identifier: Apache-2.0
# `assay up --demo`: both versions show up under their names, and the difference between them is the
# function that was made slow.
# Chance: the difference of two sampled profiles is an estimate.
. "$ROOT/tests/agent/common.bash"

"$ASSAY" up --demo --listen 127.0.0.1:0 --data "$PWD/data" 2>up.log >up.out &
up=$!
agents+=("$up")
until grep 'Sampling by' up.log >/dev/null; do
    kill -0 "$up" || { cat up.log >&2; exit 1; }
    sleep 0.1
done
need_host up
url=$(sed -n 's/^assay: serving on //p' up.log)
grep "^assay: the web page is $url/\$" up.log >/dev/null
grep "^  $url/compare?base_query=" up.log >/dev/null
page=$(sed -n "s|^  $url\(/compare.*\)|\1|p" up.log)
status 200 "$url$page"

# As it is printed, but for the first word.
question=$(sed -n 's/^  assay query diff/"$ASSAY" query diff --format json/p' up.log)
[ -n "$question" ]
grown() {
    eval "$question" >diff.json 2>/dev/null || return 1
    python3 - <<'PYTHON'
import json, sys
rows = json.load(open("diff.json"))
rows = rows["functions"] if isinstance(rows, dict) else rows
grown = {row["function"]: row for row in rows}
print(grown.get("find_discount_any_case", "not there yet"), file=sys.stderr)
# With debug information, what is inlined there is a function, too.
slow = ("find_discount_any_case", "same_letters")
sys.exit(0 if slow[0] in grown and rows[0]["function"] in slow else 1)
PYTHON
}
tries=0
until grown; do
    if [ $((tries += 1)) -gt 240 ]; then
        cat up.log diff.json >&2
        exit 1
    fi
    sleep 1
done
kill -TERM "$up"
wait "$up"
[ "$(grep -c '^demo-shop [12].0: [1-9][0-9]* orders' up.out)" = 2 ]
