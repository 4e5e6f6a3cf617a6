# SPDX-License-Identifier: Apache-2.0
# The gate: what passes, what fails, what is undecided, and that bad input never passes.
profile() { # NAME VALUE...: functions a, b, c, ... below main
    local name=$1 letter
    shift
    for letter in a b c d e f g h i j k l m n o p q r s t; do
        echo "main;$letter $1"
        shift
    done >"$name.folded"
}
gate() { local code=0; "$ASSAY" gate "$@" || code=$?; echo "exit $code"; }
profile base 4000 900 300 310 290 305 295 300 302 298 301 299 303 297 304 296 306 294 307 293
profile same 4040 890 305 300 296 300 299 304 295 303 296 305 298 301 299 302 300 301 300 299
profile slow 4020 1500 305 300 296 300 299 304 295 303 296 305 298 301 299 302 300 301 300 299
profile few 4 9 3 3 2 3 2 3 3 2 3 2 3 2 3 2 3 2 3 2
echo "== passed"; gate --base base.folded --new same.folded
echo "== failed"; gate --base base.folded --new slow.folded
echo "== undecided"; gate --base few.folded --new few.folded
# Certain to have grown, but not beyond the limit: two files say little of how files differ.
for turn in 1 2; do
    profile "turn$turn" 4000 $((800 + 200 * turn)) 300 310 290 305 295 300 302 298 301 299 303 297 304 296 306 294 307 293
    profile "later$turn" 4000 $((1500 + 240 * turn)) 305 300 296 300 299 304 295 303 296 305 298 301 299 302 300 301 300 299
done
gate --base turn1.folded --base turn2.folded --new later1.folded --new later2.folded --function '^b$' --max-growth 40%
echo "== undecided, as told"
gate --base few.folded --new few.folded --undecided pass -o /dev/null 2>&1 | tail -1
gate --base few.folded --new few.folded --undecided fail -o /dev/null 2>&1 | tail -1
echo "== several files"
profile slow2 3980 1510 299 306 300 294 302 297 303 300 298 301 304 295 303 297 299 302 298 303
gate --base base.folded --base same.folded --new slow.folded --new slow2.folded
echo "== a share"
gate --base base.folded --new same.folded --function '^a$' --max-share 30% | tail -1
gate --base base.folded --new same.folded --function '^a$' --max-share 60% | tail -1
echo "== a budget"
cat >budget.yaml <<'YAML'
budgets:
  - name: parsing
    function: ^b$
    max_share: 12%
    max_growth: 10%
YAML
gate --base base.folded --new slow.folded --budget budget.yaml
echo "== reports"
gate --base base.folded --new slow.folded -f json | sed '$d' | jq -c '.outcome, (.checks[0] | [.outcome,.function,.kind])'
# An interval is above its limit exactly where the limit is failed.
for options in '' '--max-growth 0%' '--budget budget.yaml' '--function ^[a-f]$ --max-growth 30%'; do
    # shellcheck disable=SC2086
    gate --base base.folded --new slow.folded -f json $options | sed '$d' >checks.json
    jq -e '[.checks[] | select(.kind == "growth" and .measure != "sensitivity")
        | if .outcome == "failed" then .low >= .limit else .low <= .limit end] | length > 0 and all' checks.json >/dev/null || cat checks.json
done
gate --base base.folded --new slow.folded -f markdown | sed -n 1,3p
gate --base base.folded --new slow.folded -f junit >junit.xml
sed '$d' junit.xml >only.xml && python3 -c "import xml.dom.minidom as m; print(len(m.parse('only.xml').getElementsByTagName('failure')))"
gate --base base.folded --new slow.folded --page page.html >/dev/null
grep -o '"kind":"diff"' page.html
# The page says which changes are certain, and makes the base comparable as the gate does.
page() { # OPTION...: how it is normalised, with which factor, and the verdicts
    gate --base base.folded --new slow.folded --page page.html -o /dev/null "$@"
    grep -o '"scale":.*' page.html
    sed 's/"self":{[^}]*}//g' page.html | grep -o '"verdict":"[a-z]*"' | sort | uniq -c | tr -s ' '
}
page; page --base-requests 100 --new-requests 50; page --normalize none
echo "== bisect"
"$ASSAY" gate bisect base.folded same.folded base.folded slow.folded slow2.folded || echo "exit $?"
"$ASSAY" gate bisect base.folded same.folded && echo "exit $?"
echo "== negative values are not within a limit by accident"
printf 'main;a 500\nmain;b -300\nmain;c 900\n' >negative.folded
gate --base negative.folded --new negative.folded --function '^b$' --max-share 5%
echo "== functions by name that are too small don't pass for that"
cat base.folded <(echo 'main;rare 40') >rare.folded
cat base.folded <(echo 'main;rare 90') >rarer.folded
cat base.folded <(echo 'main;rare 4') >single.folded
gate --base rare.folded --new rarer.folded --function '^rare$' --max-growth 5%
gate --base rare.folded --new rare.folded --function '^rare$' --max-growth 5%
gate --base single.folded --new single.folded --function '^rare$' --max-growth 5%
gate --base rare.folded --new base.folded --function '^rare$' --max-growth 5%
gate --base rare.folded --new rare.folded --function '^(a|rare)$' --max-growth 5%
sed 's/^main;//' base.folded >flat.folded
gate --base flat.folded --new flat.folded --min-share 60% 2>&1
echo "== bad input"
: >empty.folded
gate --base base.folded --new empty.folded 2>&1
gate --base base.folded --new missing.folded 2>&1
gate --base base.folded 2>&1
gate --base base.folded --new same.folded --function nothing_like_this --max-share 5% 2>&1
gate --base base.folded --new same.folded --max-growth NaN 2>&1
gate --base base.folded --new same.folded --max-growth=-5% 2>&1
gate --base base.folded --new same.folded --max-growth 5 2>&1
gate --base base.folded --new same.folded --function '^a$' --max-share 150% 2>&1
gate --base base.folded --new same.folded --min-share 200% 2>&1
gate --base base.folded --new same.folded --focus '^nothing$' 2>&1
gate --base base.folded --new same.folded --base-requests nan --new-requests 5 2>&1
gate --base base.folded --new same.folded --normalize requests 2>&1
gate --base base.folded --new same.folded --normalize duration 2>&1
gate --base base.folded --new same.folded --base-requests 0 --new-requests 5 2>&1
gate --base base.folded --new "$FIXTURES/man/cpu.pb.gz" 2>&1
for text in 'budgets: []' 'budgets: [{function: a}]' 'budgets: [{function: a, max_share: many}]' \
    'budgets: [{function: "(", max_share: 1%}]' 'budgets: [{function: a, max_shares: 1%}]' \
    'budgets: [{function: a, max_cores: 1}]' 'budgets: [{function: a, max_share: 25}]' \
    'budgets: [{function: a, max_cores: 5%}]' 'budgets: [{function: a, max_growth: .nan}]' \
    'budgets: [{function: a, max_growth: 1e999}]' 'budgets: [{function: a, max_share: 101%}]' \
    'budgets: [{function: a, max_growth: 5%, max_growth: 9%}]' 'budgets: 5' \
    'budgets: [{function: a, max_per_request: 1}]'; do
    echo "$text" >bad.yaml
    gate --base base.folded --new same.folded --budget bad.yaml 2>&1
done
