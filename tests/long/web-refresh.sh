# SPDX-License-Identifier: Apache-2.0
# Pages that refresh themselves every ten seconds for a day, by a clock of the test's, don't grow.

browser=${CHROMIUM:-/usr/bin/chromium}
if ! [ -x "$browser" ] || ! "$browser" --version >/dev/null 2>&1; then
    echo "There is no Chromium at $browser; set CHROMIUM to one."
    exit 77
fi
folder=$(mktemp -d "${TMPDIR:-/tmp}/assay-refresh.XXXXXX")
trap 'rm -rf "$folder"' EXIT
export HOME=$folder TMPDIR=$folder REFRESHES=8640
node "$ROOT/web/test/story.mjs" --outdir "$folder/shots" --only 'does not grow'
