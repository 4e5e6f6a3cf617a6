#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Branch stacks in AutoFDO's files, beside the truth: a tracer steps through a program instruction by
# instruction, its taken branches become a perf.data with full branch stacks, and what assay makes
# of that is compared with how often each line was executed. Then the compilers read it.

skip() {
    echo "$1"
    exit 77
}
for tool in gcc objdump python3; do
    command -v $tool >/dev/null || skip "There is no $tool here."
done
cat >program.c <<'END_OF_PROGRAM'
#include <stdlib.h>
__attribute__((noinline)) long cold(long x) { return x * 3 + 1; }
__attribute__((noinline)) long hot(long x)
{
    if (x % 4 == 0)
        x += 5;
    return x ^ (x >> 3);
}
__attribute__((noinline)) long loop(long (*const *f)(long), long n)
{
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += f[i % 10 == 0](i);
    return sum;
}
int main(int argc, char **argv)
{
    long (*const f[2])(long) = {hot, cold};
    return loop(f, argc > 1 ? atol(argv[1]) : 400) == 0;
}
END_OF_PROGRAM
cat >tracer.c <<'END_OF_TRACER'
/* Prints the address of each instruction that the program executes in its own code. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    unsigned long low = strtoul(argv[1], NULL, 16), high = strtoul(argv[2], NULL, 16);
    int status;
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0) _exit(99);
        execl(argv[3], argv[3], NULL);
        _exit(98);
    }
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        struct user_regs_struct registers;
        if (ptrace(PTRACE_GETREGS, child, 0, &registers) < 0) return 1;
        if (registers.rip >= low && registers.rip < high) printf("%llx\n", registers.rip);
        if (ptrace(PTRACE_SINGLESTEP, child, 0, 0) < 0) return 1;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 77;
}
END_OF_TRACER
gcc -O1 -g -no-pie -fcf-protection=none -Wl,-z,lazy -Wl,--build-id -o program program.c
gcc -O1 -o tracer tracer.c
cat >make.py <<'END_OF_MAKE'
import collections, json, os, re, struct, subprocess
run = lambda *a: subprocess.run(a, capture_output=True, text=True, check=True).stdout
path = os.path.abspath("program")
following, order = {}, []
for line in run("objdump", "-d", "--no-show-raw-insn", "-j", ".text", path).splitlines():
    match = re.match(r"\s+([0-9a-f]+):\t", line)
    if match: order.append(int(match[1], 16))
for one, other in zip(order, order[1:]): following[one] = other
try:
    steps = [int(line, 16) for line in
             subprocess.run(["./tracer", hex(order[0]), hex(order[-1] + 1), path], check=True,
                            capture_output=True, text=True).stdout.split()]
except subprocess.CalledProcessError:
    raise SystemExit(77)
branches = [(a, b) for a, b in zip(steps, steps[1:]) if following.get(a) != b]
# The truth: how often the busiest instruction of each line was executed; calls of each function.
executed = collections.Counter(steps)
places = run("addr2line", "-f", "-e", path, *[hex(a) for a in executed]).splitlines()
lines = collections.Counter()
for address, function, place in zip(executed, places[::2], places[1::2]):
    number = re.match(r".*program\.c:(\d+)", place)
    if number: lines[f"{function} {number[1]}"] = max(lines[f"{function} {number[1]}"], executed[address])
entries = {name: int(value, 16) for value, kind, name in
           (l.split() for l in run("nm", path).splitlines() if len(l.split()) == 3)}
json.dump({"lines": lines, "calls": {name: executed[entries[name]] for name in ("hot", "cold", "loop")}},
          open("truth.json", "w"))
# perf.data as a pipe, with the last 32 branches for each sample, and one that it shares with the next.
program = re.search(r"LOAD +0x([0-9a-f]+) 0x([0-9a-f]+) 0x[0-9a-f]+ 0x([0-9a-f]+).* R E", run("readelf", "-lW", path))
offset, start, size = (int(x, 16) for x in program.groups())
IP, TID, TIME, PERIOD, BRANCHES = 1, 2, 4, 1 << 8, 1 << 11
def record(kind, misc, body):
    body += bytes(-len(body) % 8)
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body
attr = struct.pack("<IIQQQQQ", 0, 128, 0, 99, IP | TID | TIME | PERIOD | BRANCHES, 0, 1 << 18)
attr += bytes(72 - len(attr)) + struct.pack("<Q", 1) + bytes(128 - 80)
name = path.encode() + b"\0"
out = b"PERFILE2" + struct.pack("<Q", 16) + record(64, 0, attr + struct.pack("<Q", 1))
name += bytes(-len(name) % 8)
out += record(1, 2, struct.pack("<IIQQQ", 7, 7, start, (size + 4095) & ~4095, offset) + name + struct.pack("<IIQ", 7, 7, 1))
for at in range(0, len(branches), 32):
    stack = branches[at : at + 33][::-1]
    body = struct.pack("<QIIQQ", stack[0][1], 7, 7, 100 + at, 1) + struct.pack("<Q", len(stack))
    out += record(9, 2, body + b"".join(struct.pack("<QQQ", a, b, 0) for a, b in stack))
open("program.data", "wb").write(out)
END_OF_MAKE
python3 make.py || skip "Programs can't be traced here."
"$ASSAY" convert program.data -o program.afdo.txt
"$ASSAY" convert program.data -o program.afdo
# What was kept in between says the same.
"$ASSAY" convert program.data -o program.pb.gz
"$ASSAY" convert program.pb.gz -o again.afdo.txt
cmp program.afdo.txt again.afdo.txt
cat >compare.py <<'END_OF_COMPARE'
import json, re
truth = json.load(open("truth.json"))
first = {}
source = open("program.c").read().splitlines()
for number, line in enumerate(source, 1):
    match = re.match(r".*\b(cold|hot|loop|main)\(.*", line)
    if match and not line.startswith(" "): first[match[1]] = number
lines, heads, targets, name = {}, {}, {}, None
for line in open("program.afdo.txt"):
    head = re.match(r"(\w+):\d+:(\d+)", line)
    if head: name = head[1]; heads[name] = int(head[2])
    body = re.match(r" (\d+): (\d+)(.*)", line)
    if body:
        lines[f"{name} {first[name] + int(body[1])}"] = int(body[2])
        for target, count in re.findall(r"(\w+):(\d+)", body[3]): targets[target] = int(count)
near = lambda found, expected: abs(found - expected) <= 2 + expected / 20
wrong = []
for place, count in truth["lines"].items():
    if place.split()[0] in first and count > 3 and not near(lines.get(place, 0), count):
        wrong.append((place, count, lines.get(place)))
for name, count in truth["calls"].items():
    if not near(heads.get(name, 0), count): wrong.append((name, count, heads.get(name)))
for name in ("hot", "cold"):
    if not near(targets.get(name, 0), truth["calls"][name]): wrong.append(("to", name, targets))
print("as executed" if not wrong else wrong)
assert truth["calls"]["hot"] == 360 and truth["calls"]["cold"] == 40, truth
assert not wrong
END_OF_COMPARE
python3 compare.py
if command -v llvm-profdata >/dev/null; then
    llvm-profdata show --sample program.afdo.txt >shown.txt
    grep -E 'calls: .*hot:' shown.txt >/dev/null
fi
if command -v clang >/dev/null; then
    # The pointer is compared with what it usually is.
    clang -O2 -g -fprofile-sample-use=program.afdo.txt -S -emit-llvm -o program.ll program.c
    grep -E 'icmp eq .*@hot' program.ll >/dev/null
fi
gcc -O2 -g -fauto-profile=program.afdo -fdump-tree-optimized-blocks-details -c program.c -o program.o
cat program.c.*optimized | grep 'auto FDO' >/dev/null
