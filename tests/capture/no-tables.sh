# SPDX-License-Identifier: Apache-2.0
# Code without unwind tables and frame pointers: assembly, and static programs of musl, with and
# without symbols. Its callers are found, and what is called complete begins where the thread does.
. "$ROOT/tests/capture/common.bash"
need gcc objcopy python3

cat >turn.S <<'END'
    .text
    .globl turn
    .type turn, @function
turn:
    push %rbx
    push %r12
    mov %rdi, %rbx
1:  imul %rbx, %r12
    dec %rbx
    jnz 1b
    pop %r12
    pop %rbx
    ret
    .size turn, . - turn
    .section .note.GNU-stack, "", @progbits
END
cat >program.c <<'END'
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char a[65536], b[65536];
static volatile uint64_t sink;
#define CALL __attribute__((noinline, noclone))
void turn(uint64_t n);
CALL void copy(void) { for (int i = 0; i < 3000; i++) memcpy(a, b, sizeof(a)); sink++; }
CALL void print(void) { for (int i = 0; i < 8000; i++) snprintf(a, sizeof(a), "%d %s %x", i, "text", 3 * i); sink++; }
CALL void assembly(void) { turn(6000000); sink++; }
CALL void work(void) { copy(); print(); assembly(); sink++; }
CALL void *in_thread(void *none) { for (int i = 0; i < 60; i++) work(); sink++; return none; }
int main(int argc, char **argv)
{
    pthread_t thread;
    (void)argc;
    pthread_create(&thread, 0, in_thread, argv);
    for (int i = 0; i < 60; i++) work();
    pthread_join(thread, 0);
    return 0;
}
END
builds=("gcc -O2 -fomit-frame-pointer -pthread")
command -v musl-gcc >/dev/null && builds+=("musl-gcc -O2 -static") || skip_case musl "there is no musl-gcc here"
keep=()
for function in main in_thread work copy print assembly; do keep+=(-K "$function"); done
for build in "${builds[@]}"; do
    name=${build%% *}
    # shellcheck disable=SC2086 # words
    $build -o program program.c turn.S
    for stripped in "" "stripped "; do
        # Then nothing says where the C library's functions begin, and the assembly's.
        [ -z "$stripped" ] || objcopy --strip-all "${keep[@]}" program
        for ASSAY_SAMPLER in "${samplers[@]}"; do
            "$ASSAY" record -F 499 -o program.pb.gz -- ./program 2>said
            sed 's/^/# /' said
            check "$stripped$name ($ASSAY_SAMPLER)" python3 "$capture/no_tables.py" program.pb.gz said $stripped
        done
    done
done

# Where the stack pointer is moved by a number that nobody knows, callers can't be found. A frame pointer
# is then that of the caller, which must not be left out of a stack that is called complete.
cat >lost.S <<'END'
    .text
    .globl lost
lost:
    push %rbx
    mov %rsp, %rbx
    sub %rdi, %rsp
1:  dec %rsi
    jnz 1b
    mov %rbx, %rsp
    pop %rbx
    ret
    .section .note.GNU-stack, "", @progbits
END
cat >callers.c <<'END'
#include <stdint.h>
static volatile uint64_t sink;
#define CALL __attribute__((noinline, noclone))
void lost(uint64_t bytes, uint64_t turns);
CALL void inner(void) { lost(64, 300000000); sink++; }
CALL void outer(void) { inner(); sink++; }
int main(void) { outer(); return 0; }
END
gcc -O2 -fno-omit-frame-pointer -o callers callers.c lost.S
no_caller_left_out() {
    "$ASSAY" record -F 499 -o callers.pb.gz -- ./callers 2>said || return 1
    "$ASSAY" convert callers.pb.gz --to folded -o callers.folded || return 1
    cat said callers.folded
    grep 'incomplete: a function has neither an unwind table nor a frame pointer' said || return 1
    grep -E 'lost( |;)' callers.folded || return 1
    ! grep -E 'lost( |;)' callers.folded | grep -vE '^\[unknown\];lost|;inner;lost'
}
for ASSAY_SAMPLER in "${samplers[@]}"; do check "a lost stack pointer ($ASSAY_SAMPLER)" no_caller_left_out; done
