# SPDX-License-Identifier: Apache-2.0
# `sample` runs on macOS; FlameGraph's stackcollapse-sample.awk folds its reports everywhere. Both must
# find the same stacks: threads and modules, which assay keeps apart, are taken off its lines, and so
# are waits, which it leaves out.
command -v stackcollapse-sample.awk >/dev/null || { echo "There is no stackcollapse-sample.awk of FlameGraph here." && exit 77; }
cat >report.txt <<'END_OF_OUTPUT'
Analysis of sampling small (pid 200) every 1 millisecond
Process:         small [200]
Path:            /usr/local/bin/small
Report Version:  7
Analysis Tool:   /usr/bin/sample
----

Call graph:
    825 Thread_15758523   DispatchQueue_1: com.apple.main-thread  (serial)
    + 825 start  (in libdyld.dylib) + 1  [0x7fff737cf3d5]
    +   820 main  (in small) + 41  [0x10384b549]
    +   ! 500 heavy  (in small) + 334  [0x103a0db1e]
    +   ! : 480 memcpy  (in libsystem_platform.dylib) + 12  [0x7fff73a01111]
    +   ! : | 3 small_copy  (in libsystem_platform.dylib) + 2  [0x7fff73a02222]
    +   ! : 20 _malloc_zone_malloc  (in libsystem_malloc.dylib) + 103  [0x7fff73a03333]
    +   ! 320 light  (in small) + 31  [0x103a230cf]
    +   5 open  (in libsystem_kernel.dylib) + 10  [0x7fff739069de]
    825 Thread_15758535
      825 thread_start  (in libsystem_pthread.dylib) + 13  [0x7fff739c240d]
        825 _pthread_start  (in libsystem_pthread.dylib) + 66  [0x7fff739c6249]
          800 __psynch_cvwait  (in libsystem_kernel.dylib) + 10  [0x7fff739079ee]
          25 worker  (in small) + 9  [0x103a106c9]

Total number in stack (recursive counted multiple, when >=5):

Sort by top of stack, same collapsed (when >= 5):
        __psynch_cvwait  (in libsystem_kernel.dylib)        800
END_OF_OUTPUT
stackcollapse-sample.awk report.txt | sed -E 's/^Thread_[^;]*;//; s/(^|;)[^;`]*`/\1/g' | grep -v ' 0$' | LC_ALL=C sort >theirs.txt
"$ASSAY" convert --original-names -t samples report.txt -o ours.folded
grep -v __psynch_cvwait ours.folded | LC_ALL=C sort >ours.txt
cat ours.txt
[ -s ours.txt ]
diff theirs.txt ours.txt
"$ASSAY" info --format json report.txt | jq -e '[.types[] | [.type, .total]] == [["samples", 1650], ["wall", 1650000000]]'
