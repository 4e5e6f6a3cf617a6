# SPDX-License-Identifier: Apache-2.0
# Names that take long: how far it has come is shown on a terminal, the time limit and Ctrl-C hold even
# if the child that reads debug information hangs, and the file can be named later.
. "$ROOT/tests/capture/common.bash"
need gcc python3
ASSAY_SAMPLER=${samplers[0]}

cat >busy.c <<'END'
#include <stdint.h>
static volatile uint64_t sink;
static inline __attribute__((always_inline)) void inlined(void) { for (;;) sink += sink * sink; }
__attribute__((noinline)) void spin(void) { inlined(); sink++; }
int main(void) { spin(); return 0; }
END
# That child never begins.
cat >hang.c <<'END'
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void hang(void)
{
    char line[64] = "";
    int fd = open("/proc/self/cmdline", O_RDONLY);
    ssize_t length = read(fd, line, sizeof(line) - 1);
    close(fd);
    if (length > 6 && !strcmp(line + strlen(line) + 1, "--confined"))
        for (;;) pause();
}
END
cat >terminal.py <<'END'
"""terminal.py watch|wait COMMAND...: runs it on a terminal, where "watch" presses Ctrl-C once it says
how far it is."""
import os, pty, sys
pid, terminal = pty.fork()
if not pid:
    os.environ["LD_PRELOAD"] = os.path.abspath("hang.so")
    os.execvp(sys.argv[2], sys.argv[2:])
said, waits = b"", sys.argv[1] == "watch"
while True:
    try:
        part = os.read(terminal, 4096)
    except OSError:
        break
    said += part
    if waits and b"resolving names: 0 of 1 files" in said:
        waits = False
        os.write(terminal, b"\x03")
sys.stdout.buffer.write(said.replace(b"\r", b"\n"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0 or waits)
END
gcc -O2 -g -static -o busy busy.c && gcc -O2 -shared -fPIC -o hang.so hang.c
./busy &
busy=$!
started+=("$busy")

can_be_named_later() { # FILE
    "$ASSAY" report "$1" -n 0 --format csv >addresses.csv
    grep ',spin,' addresses.csv && ! grep inlined addresses.csv || return 1
    "$ASSAY" convert --symbolize "$1" -o named.pb.gz
    "$ASSAY" report named.pb.gz -n 0 --format csv | grep ',inlined,'
}
shown() {
    python3 terminal.py watch "$ASSAY" record -F 499 -p "$busy" -d 0.3 --naming-timeout 0 -o shown.pb.gz &&
        can_be_named_later shown.pb.gz
}
limited() {
    python3 terminal.py wait "$ASSAY" record -F 499 -p "$busy" -d 0.3 --naming-timeout 0.5 -o limited.pb.gz |
        tee limited.said && grep 'the time limit was exceeded' limited.said && can_be_named_later limited.pb.gz
}
check "progress, and Ctrl-C" shown
check "the time limit" limited
