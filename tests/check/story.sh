#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# story.sh ROOT SHOTS: uses the server's page in a real browser as people do; pictures of its pages go
# to the folder SHOTS.
set -euo pipefail

browser=${CHROMIUM:-/usr/bin/chromium}
# Ubuntu's package is an empty one that asks for a snap.
if ! [ -x "$browser" ] || ! "$browser" --version >/dev/null 2>&1; then
    echo "There is no Chromium at $browser; set CHROMIUM to one."
    exit 77
fi

folder=$(mktemp -d "${TMPDIR:-/tmp}/assay-story.XXXXXX")
trap 'rm -rf "$folder"' EXIT
export HOME=$folder TMPDIR=$folder
# A graph that is drawn anew while somebody types loses what was typed now and then: told again, a
# story that is wrong is wrong each time. What failed before is shown.
for attempt in 1 2 3; do
    status=0
    node "$1/web/test/story.mjs" --outdir "$2" >"$folder/story.log" || status=$?
    [ "$status" -ne 0 ] && [ "$attempt" -lt 3 ] || break
    echo "# attempt $attempt of 3 failed:"
    sed 's/^/# /' "$folder/story.log"
done
cat "$folder/story.log"
exit "$status"
