# SPDX-License-Identifier: Apache-2.0
# Programs of another user map jitdumps that lie: sizes, counts, names without end, records about other
# processes' code, links to files of root, pipes. The agent goes on, stays within its memory, samples
# and names others as before, and nothing of root's files appears in a profile. With sanitizers, where
# that program is built.
. "$ROOT/tests/agent/common.bash"
[ "$(id -u)" -eq 0 ] || { echo "Only root can act as two users."; exit 77; }
sanitized=$(dirname "$ASSAY")-asan/assay
[ ! -x "$sanitized" ] || ASSAY=$sanitized
export ASAN_OPTIONS=detect_leaks=0
chmod 755 . ..
echo "secret_of_root_$$" >secret
chmod 600 secret
cat >forger.c <<'C'
// forger FILE SECONDS: runs code in memory of its own, with a jitdump of that name mapped.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    // loop: dec edi; jnz loop; ret
    static const unsigned char code[] = {0xff, 0xcf, 0x75, 0xfc, 0xc3};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    void (*run)(int) = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy((void *)run, code, sizeof(code));
    int fd = open(argv[1], O_RDONLY | O_NONBLOCK);
    if (fd >= 0)
        mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    for (time_t end = time(NULL) + atoi(argv[2]); argc == 3 && time(NULL) < end;)
        run(1000000);
    return 0;
}
C
cc -O1 -o forger forger.c
cat >forge.py <<'PYTHON'
import os, random, struct, sys
number, folder = int(sys.argv[1]), sys.argv[2]
chance = random.Random(number)
def header(magic=0x4A695444, version=1, size=40, pid=0):
    return struct.pack("<IIIIIIQQ", magic, version, size, 62, 0, pid, 0, 0)
def load(name, address, size, code=b"\xc3", total=None, pid=0):
    body = struct.pack("<IIQQQQ", pid, pid, address, address, size, 1) + name + b"\0" + code
    return struct.pack("<IIQ", 0, 16 + len(body) if total is None else total, 0) + body
forms = [
    lambda: header() + load(b"n" * 5_000_000, 0x1000, 1),
    lambda: header() + load(b"huge", 0, 2**64 - 1),
    lambda: header() + load(b"lying", 0x1000, 2**40, total=2**32 - 1),
    lambda: header() + load(b"empty", 0x1000, 4, total=0),
    lambda: header(size=2**32 - 1) + load(b"x", 0x1000, 1),
    lambda: header(version=77) + load(b"x", 0x1000, 1),
    lambda: header(pid=1) + load(b"init", 0x1000, 1, pid=1),
    lambda: header() + b"".join(load(b"f%d" % i, 4096 * i, 4096) for i in range(200_000)),
    lambda: header() + b"".join(load(b"f%d" % i, 0, 2**47) for i in range(20_000)),
    lambda: header() + chance.randbytes(1_000_000),
    lambda: header() + load(b"\x1b[31m<script>\"\\\n", 0, 2**47),
    lambda: b"",
]
path = f"{folder}/jit-{number}.dump"
if number % 14 == 12:
    os.symlink(os.path.abspath("secret"), path)
elif number % 14 == 13:
    os.mkfifo(path)
    os.chmod(path, 0o666)
else:
    with open(path, "wb") as file:
        file.write(forms[number % 14]())
PYTHON
mkdir -m 777 forged
start_server server --data store
start_agent agent
need_host agent
OTEL_SERVICE_NAME="honest-$$" ./busy 1000 &
honest=$!
agents+=("$honest")
for round in $(seq "${ASSAY_ROUNDS:-3}"); do
    for number in $(seq $((round * 14)) $((round * 14 + 13))); do
        python3 forge.py "$number" forged
        chown -h 65534:65534 "forged/jit-$number.dump"
        setpriv --reuid=65534 --regid=65534 --clear-groups ./forger "forged/jit-$number.dump" 4 &
        agents+=("$!")
    done
    sleep 12 # a window of the agent
    kill -0 "$agent" || { tail -n 30 agent.log >&2; exit 1; }
done
status_of agent
resident=$(awk '/^VmRSS/ { print int($2 / 1024) }' "/proc/$agent/status")
echo "The agent has $resident MiB."
[ "$ASSAY" = "$sanitized" ] || [ "$resident" -le 128 ]
# The server asks for symbols once a minute, and the agent sends them slowly, among those of all else
# that runs here: names come late, and then for all that was sampled before.
for ((tries = 0; ; tries++)); do
    get "/api/v1/profile?query=cpu%7Bservice_name%3D%22honest-$$%22%7D&$always&format=folded" >honest.folded || true
    ! grep 'busy_caller;busy_leaf' honest.folded >/dev/null || break
    [ "$tries" -lt 600 ] || { echo "Honest code has no names." >&2; head honest.folded >&2; exit 1; }
    kill -0 "$agent"
    sleep 1
done
if grep -a -e '\[jit' -e lying -e 'busy+0x' honest.folded; then exit 1; fi
kill "$honest"
stop_agent
if grep -e AddressSanitizer -e 'runtime error' agent.log; then exit 1; fi
get "/api/v1/profile?query=cpu&$always&format=folded" >all.folded
grep busy_leaf all.folded >/dev/null
if grep -a "secret_of_root" all.folded; then echo "A file of root's was read." && exit 1; fi
# No forged name on code of others.
if grep -a busy_caller all.folded | grep -a -e ';lying' -e ';init ' -e ';f[0-9][0-9]*[; ]'; then exit 1; fi
stop_server
