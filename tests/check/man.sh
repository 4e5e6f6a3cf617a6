#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# man.sh ROOT: every subcommand has a man page, no page is left over, and mandoc finds nothing to
# warn about. The subcommands are those that `assay --help` lists under "Commands:".
set -euo pipefail

root=$1
status=0
fail() { echo "$*"; status=1; }

commands=$("$ASSAY" --help | sed -n '/^Commands:/,/^$/s/^  *\([a-z][a-z-]*\) .*/\1/p')
[ -n "$commands" ] || fail "assay --help lists nothing under \"Commands:\"."

for command in $commands; do
    [ "$command" = help ] || [ -f "$root/man/assay-$command.1" ] ||
        fail "assay $command has no man page: man/assay-$command.1 is missing."
done
for page in "$root"/man/assay-*.1; do
    name=$(basename "$page" .1)
    grep -qx "${name#assay-}" <<<"$commands" ||
        fail "man/$name.1 describes a command that assay --help doesn't list."
done
[ -f "$root/man/assay.1" ] || fail "man/assay.1 is missing."

mandoc -T lint -W warning "$root"/man/*.1 || status=1
exit "$status"
