# SPDX-License-Identifier: Apache-2.0
# The page of `assay view`: its data is only for who knows its address, and it ends when told.
type curl >/dev/null || { echo "curl is missing."; exit 77; }
man="$ROOT/tests/fixtures/man"
child=
trap '[ -z "$child" ] || kill -9 "$child" 2>/dev/null || true' EXIT

# begin FILES...: sets $address, $base, $secret and $child.
begin() {
    : >address.txt
    "$ASSAY" view "$@" >address.txt &
    child=$!
    local tries=0
    until [ -s address.txt ]; do
        [ $((tries += 1)) -lt 1200 ] && kill -0 "$child"
        sleep 0.05
    done
    address=$(cat address.txt)
    base=${address%/view/*} secret=${address##*/}
}
code() { curl -sS -o answer.txt -w '%{http_code}\n' "$@"; }
token() { curl -sS --fail-with-body -H "Authorization: Bearer $secret" "$@"; }

begin "$man/cpu.pb.gz"
[[ $base == http://127.0.0.1:* && $secret =~ ^[0-9a-f]{32}$ ]]
code "$address"
[[ $(cat answer.txt) == *'/assets/app-'* ]]
token "$base/api/v1/view"
token "$base/api/v1/view/flame/0" >data.txt
sed -n 1p data.txt | cut -c 1-17
# Saved in another format it is what it was.
token "$base/api/v1/view/flame/0?format=pprof" >saved.pb.gz
"$ASSAY" convert saved.pb.gz -o saved.folded
"$ASSAY" convert "$man/cpu.pb.gz" -o wanted.folded
cmp saved.folded wanted.folded
code -H "Authorization: Bearer $secret" "$base/api/v1/view/flame/0?format=wrong"
# Without the secret, or with another of its length, there is no data.
code "$base/api/v1/view"
code -H "Authorization: Bearer ${secret//[0-9]/a}x" "$base/api/v1/view/flame/0"
code -H "Authorization: Bearer $(printf '%032d' 0)" "$base/api/v1/view/flame/0"
code --data-binary @"$man/cpu.pb.gz" "$base/api/v1/files/flame"
# A page elsewhere can't ask either.
code -H 'Host: evil.example' -H "Authorization: Bearer $secret" "$base/api/v1/view"
code -H "Authorization: Bearer $secret" "$base/api/v1/view/flame/1"
code "$base/"
# A file that is dropped on the page.
token --data-binary @"$man/cpu.pb.gz" "$base/api/v1/files/flame" >data.txt
sed -n 1p data.txt | cut -c 1-17
kill -INT "$child" && wait "$child" && echo "ended with $?"

begin --once "$man/base.pb.gz" "$man/new.pb.gz"
token "$base/api/v1/view"
token "$base/api/v1/view/diff?normalize=none" >data.txt
sed -n 1p data.txt | cut -c 1-26
wait "$child" && echo "ended with $?"
child=

"$ASSAY" view missing.pb.gz 2>&1 || echo "failed with $?"
"$ASSAY" view "$ROOT/LICENSE" >/dev/null 2>&1 || echo "failed with $?"
"$ASSAY" view a b c 2>/dev/null || echo "failed with $?"
