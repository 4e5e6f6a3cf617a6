#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# browser.sh ROOT: drives the flame-graph page in a real browser: first made-up pages that cover its
# features and hostile names, then pages that assay itself writes.
set -euo pipefail

root=$1
browser=${CHROMIUM:-/usr/bin/chromium}
# Ubuntu's package is an empty one that asks for a snap.
if ! [ -x "$browser" ] || ! "$browser" --version >/dev/null 2>&1; then
    echo "There is no Chromium at $browser; set CHROMIUM to one."
    exit 77
fi

folder=$(mktemp -d "${TMPDIR:-/tmp}/assay-browser.XXXXXX")
trap 'rm -rf "$folder"' EXIT
export HOME=$folder TMPDIR=$folder

node "$root/web/build.mjs" --outdir "$root/web/dist"
node "$root/web/test/browser.mjs"

"$ASSAY" flame "$FIXTURES/cpu.pb.gz" -o "$folder/flame.html"
"$ASSAY" diff "$FIXTURES/base.pb.gz" "$FIXTURES/new.pb.gz" -o "$folder/diff.html"
node "$root/web/test/browser.mjs" "$folder/flame.html" "$folder/diff.html"
