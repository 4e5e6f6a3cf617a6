# SPDX-License-Identifier: Apache-2.0
# The web page as it is served: headers, what browsers may keep, what is not there.
. "$ROOT/tests/server/common.bash"

start_server web --in-memory
has() { grep -i "^$1: $2" head.txt >/dev/null || { echo "$1 isn't $2:" && cat head.txt; exit 1; }; }
lacks() { if grep -i "^$1:" head.txt; then exit 1; fi; }

# Every page is the same document, which is asked for anew each time.
for page in / /explore /requests /compare /function /files /recordings /agents /symbols '/explore?query=cpu%7B%7D'; do
    curl -sS -D head.txt -o page.html "$url$page"
    grep '^HTTP/1.1 200' head.txt >/dev/null
    has Content-Type 'text/html; charset=utf-8'
    has Cache-Control no-cache
    has X-Content-Type-Options nosniff
    has Referrer-Policy same-origin
    has Cross-Origin-Opener-Policy same-origin
    lacks Set-Cookie
    policy=$(sed -n 's/^[Cc]ontent-[Ss]ecurity-[Pp]olicy: //p' head.txt)
    [[ $policy == *"default-src 'none'"* && $policy == *"script-src 'self'"* &&
        $policy == *"frame-ancestors 'none'"* && $policy == *"base-uri 'none'"* ]]
    # Nothing inline may run or style, and no string becomes code.
    [[ $policy != *unsafe* && $policy != *'*'* ]]
    cmp page.html first.html 2>/dev/null || cp page.html first.html
done

# The document itself has no script or style within it, and loads only what is ours.
if grep -iE '<style| style=| on[a-z]+=|javascript:|https?://' first.html; then exit 1; fi
[ "$(grep -ic '<script' first.html)" = 1 ]
[[ $(cat first.html) == *'<script type="module" src="/assets/'* ]]

# Assets are named by their content, so that they may be kept for ever.
assets=$(grep -oE '/assets/[^"]+' first.html)
[ "$(wc -l <<<"$assets")" = 3 ]
first=$(sed -nE 's|.*<script type="module" src="(/assets/[^"]+)".*|\1|p' first.html)
# The other pages' script is named by the first one only.
curl -sS -o script "$url$first"
assets=$({ echo "$assets"; grep -oE 'app-[0-9a-f]{12}\.js' script | sed 's|^|/assets/|'; } | sort -u)
[ "$(wc -l <<<"$assets")" = 4 ]
for asset in $assets; do
    curl -sS -D head.txt -o asset "$url$asset"
    has Cache-Control 'public, max-age=31536000, immutable'
    has X-Content-Type-Options nosniff
    case $asset in
    *.js)
        has Content-Type 'text/javascript; charset=utf-8'
        if grep -oE '\beval\(|new Function\(|insertAdjacentHTML|document\.(write|cookie).{20}' asset
        then exit 1; fi
        ;;
    *.css)
        has Content-Type 'text/css; charset=utf-8'
        if grep -E '@import|url\((https?:)?//' asset; then exit 1; fi
        ;;
    esac
    name=${asset#/assets/}
    digest=$(sed -E 's/^app-([0-9a-f]{12})\..*/\1/' <<<"$name")
    [[ $(sha256sum <asset) == "$digest"* ]]
    curl -sS -D head.txt -o packed -H 'Accept-Encoding: gzip' "$url$asset"
    has Content-Encoding gzip
    curl -sS -I "$url$asset" >head.txt
    grep '^HTTP/1.1 200' head.txt >/dev/null
done

# What isn't there is said to be missing, and nothing leads out of the page's files.
status 404 "$url/assets/app-000000000000.js"
json answer.txt 'd["code"] == "not_found" and "reload" in d["message"]'
status 404 "$url/assets/index.html/x"
status 404 --path-as-is "$url/assets/../../etc/passwd"
status 404 --path-as-is "$url/assets/%2e%2e/secret"
status 404 "$url/nonsense"
json answer.txt 'd["message"] == "Unknown route /nonsense."'
status 404 -H 'Accept: text/html,*/*;q=0.8' "$url/nonsense"
cmp answer.txt <(curl -sS "$url/explore") # which says what is missing
status 404 -H 'Accept: text/html' -X POST -d x "$url/nonsense"
json answer.txt 'd["code"] == "not_found"'
status 405 -H 'Accept: text/html' "$url/api/v1/push"
status 404 "$url/view/0"
status 405 -X POST -d x "$url/explore"
stop_server

# Pages need no token, since they hold no data; all that they ask does.
"$ASSAY" token create me --file tokens --roles read >token 2>/dev/null
start_server guarded --in-memory --tokens tokens
status 200 "$url/explore"
status 200 "$url/files"
status 401 "$url/api/v1/types"
status 401 -d x "$url/api/v1/files/flame"
status 401 "$url/api/v1/agents"
status 200 -H "Authorization: Bearer $(cat token)" "$url/api/v1/types"
# A cookie is no token.
status 401 -H "Cookie: assay-token=$(cat token); token=$(cat token)" "$url/api/v1/types"
stop_server
