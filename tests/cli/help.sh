# SPDX-License-Identifier: Apache-2.0
# --help is there for each command, and the man page knows exactly the same options.
commands=$("$ASSAY" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
[ -n "$commands" ]
for command in $commands; do
    "$ASSAY" "$command" --help >help
    "$ASSAY" "$command" -h | cmp help -
    "$ASSAY" help "$command" | cmp help -
    sed -nE 's/^  (-.,|   ) (--[a-z][a-z-]+).*/\2/p' help | sort -u >from-help
    sed 's/\\-/-/g' "$ROOT/man/assay-$command.1" | grep -oE '^\.(B|BI|BR) .*--[a-z][a-z-]+' |
        grep -oE -- '--[a-z][a-z-]+' | sort -u >from-man
    diff from-help from-man && echo "$command: $(wc -l <from-help) options"
    awk 'length > 100 { print "too wide: " $0 }' help
done
