# SPDX-License-Identifier: Apache-2.0
# `assay simulate` and `assay demo` start assay-simulate, which is beside assay; where it isn't
# installed, they report its path.
cp "$ASSAY" alone
for command in simulate demo; do
    if ./alone "$command" --help 2>error.txt; then exit 1; fi
    grep -F "\`assay $command\` failed to start $PWD/assay-simulate: No such file or directory." error.txt
done
