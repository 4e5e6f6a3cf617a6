# SPDX-License-Identifier: Apache-2.0
# DTrace runs on other systems; FlameGraph's stackcollapse.pl folds its output everywhere. Both must
# find the same stacks: modules and offsets, which assay keeps apart, are taken off the names.
command -v stackcollapse.pl >/dev/null || { echo "There is no stackcollapse.pl of FlameGraph here." && exit 77; }
cat >more.txt <<'END_OF_OUTPUT'
CPU     ID                    FUNCTION:NAME
  0  76208                        :tick-60s

              unix`0xfffffffffb800c91
              genunix`syscall_mstate+0x4a
              unix`sys_syscall+0x10e
                7

              libc.so.1`__write+0x7
              libstdc++.so.6`std::ostream::write+0x2c
              a.out`main+0x21
              a.out`_start+0x80
               31

              node`uv__io_poll+0x12
              node`main+0x3
                2
END_OF_OUTPUT
for file in "$FIXTURES/dtrace/stacks.txt" more.txt; do
    stackcollapse.pl "$file" | sed -E 's/(^|;)[^;`]*`/\1/g' | LC_ALL=C sort >theirs.txt
    "$ASSAY" convert "$file" -o ours.folded 2>/dev/null
    LC_ALL=C sort ours.folded >ours.txt
    [ -s ours.txt ]
    cmp ours.txt theirs.txt
done
echo "the same stacks"
