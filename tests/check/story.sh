#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# story.sh ROOT SHOTS [OPTION...]: uses the server's page in a real browser as people do; pictures of
# its pages go to the directory SHOTS.
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
node "$1/web/test/story.mjs" --outdir "$2" "${@:3}"
