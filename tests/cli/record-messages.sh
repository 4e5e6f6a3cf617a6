# SPDX-License-Identifier: Apache-2.0
# What is said when something is missing: the cause, and what helps.
cat >busy.c <<'END'
#include <stdint.h>
#include <stdlib.h>
static volatile uint64_t sink;
int main(int argc, char **argv)
{
    for (uint64_t i = 0; argc > 1 && i < strtoull(argv[1], 0, 10); i++) sink += i;
    return 0;
}
END
gcc -O1 -o busy busy.c
"$ASSAY" record -q -F 99 -o probe.pb.gz -- true 2>said || { echo "Samples cannot be taken here: $(cat said)" && exit 77; }

# One long thread at a low rate: a part of a period is missing at its end, and nothing else.
for ASSAY_SAMPLER in bpf perf; do
    ASSAY_SAMPLER=$ASSAY_SAMPLER "$ASSAY" record -F 10 -o slow.pb.gz -- ./busy 600000000 2>said ||
        grep -E 'CAP_|root|pid namespace' said >/dev/null
    ! grep -E 'not sampled|covered' said
done

# Why stacks are incomplete is a sentence, not a name of ours: a function without symbols that has left
# its thread's stack for one that nothing leads back from.
cat >lost.S <<'END'
    .bss
    .skip 65536
own_stack:
    .text
    .globl _start
_start:
    xor %eax, %eax
    call nameless
nameless = . + 16
    hlt
    .skip 15, 0x90
    lea own_stack-4096(%rip), %rsp
    lea 1(%rsp), %rbp
    mov $1500000000, %ecx
1:  dec %rcx
    jnz 1b
    mov $60, %eax
    xor %edi, %edi
    syscall
END
gcc -nostdlib -static -o lost lost.S
strip lost
"$ASSAY" record -F 199 -o lost.pb.gz -- ./lost 2>said
grep -oE 'stacks are incomplete: a function has neither an unwind table' said | sort -u
! grep -E 'no rows|no table|stale' said

# As another user: not the sysctl that doesn't help.
if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null; then
    printf '%s\n' "1: belongs to another user" "-a: only root" \
        "were spent in the kernel, where samples need privileges"
else
    folder=$(mktemp -d /tmp/assay-messages.XXXXXX)
    trap 'rm -rf "$folder"' EXIT
    chmod 755 "$folder"
    install -m 755 "$ASSAY" "$folder/assay"
    as_nobody() { (cd / && setpriv --reuid 65534 --regid 65534 --clear-groups -- env ASSAY_CACHE= "$folder/assay" "$@"); }
    as_nobody record -o /dev/null --to pprof -d 0.1 -p 1 2>said && cat said
    grep -E 'paranoid=' said || grep -oE 'process 1 belongs to another user' said >/dev/null && echo "1: belongs to another user"
    # Where the kernel lets everybody look at everything, it says what is missing.
    as_nobody record -o /dev/null --to pprof -d 0.1 -a 2>said || true
    grep -E 'paranoid=' said || grep -E 'only root can|Run as root for the whole' said >/dev/null && echo "-a: only root"
    # Time in the kernel is missing because it can't be seen, not because threads are short. Where there
    # are no perf events for everybody, the sampler counts it.
    as_nobody record -F 199 -o /dev/null --to pprof -- dd if=/dev/zero of=/dev/null bs=1 count=1500000 2>said
    if grep 'by perf events' said >/dev/null; then
        grep -oE 'were spent in the kernel, where samples need privileges' said || cat said
    else
        echo "were spent in the kernel, where samples need privileges"
    fi
fi
