# SPDX-License-Identifier: Apache-2.0
# An agent that hangs is ended, and by `assay up` started again; one that was stopped as a whole is
# not; and systemd hears what it wants to.
. "$ROOT/tests/agent/common.bash"

# Stops one thread of a process for good, by ptrace; ends with the process.
cat >stop_thread.py <<'P'
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
SEIZE, INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000
tid = int(sys.argv[1])
if libc.ptrace(SEIZE, tid, None, None) or libc.ptrace(INTERRUPT, tid, None, None):
    print("This user may trace nobody:", os.strerror(ctypes.get_errno()))
    sys.exit(77)
print("stopped", flush=True)
while True:
    try:
        _, status = os.waitpid(tid, WALL)
    except ChildProcessError:
        break
    if os.WIFEXITED(status) or os.WIFSIGNALED(status):
        break
    if status >> 8 & 0xff != 5 or status >> 16 != 128:  # anything but the stop that was asked for
        libc.ptrace(7, tid, None, status >> 8 & 0xff)
P

url=http://127.0.0.1:9 # nobody listens: all of this is about the agent alone
# Longer than a machine with other things to do lets a thread wait.
echo 'watchdog: 4s' >settings.yaml

# await_end PID: by SIGABRT.
await_end() {
    local status=0 tries=0
    until ! kill -0 "$1" 2>/dev/null || [ ! -d "/proc/$1/task" ]; do
        if grep 'may trace nobody' stop.txt; then exit 77; fi
        [ $((tries += 1)) -lt 900 ]
        sleep 0.1
    done
    wait "$1" 2>/dev/null || status=$?
    [ "$status" -eq 134 ]
}
: >stop.txt

# The thread that makes requests, which has nothing to do until a window is over; see below.
echo 'watchdog: 3s' >stuck.yaml
start_agent stuck --config stuck.yaml
stuck=$agent
thread=$(grep -l -x windows "/proc/$stuck/task/"*/comm | sed 's|.*task/\([0-9]*\)/.*|\1|')
[ -n "$thread" ]
python3 stop_thread.py "$thread" >/dev/null &
agents+=("$!")

# As a whole it may sleep as long as it is told to; the thread that samples may not.
start_agent asleep --config settings.yaml
asleep=$agent
kill -STOP "$asleep"
start_agent hangs --config settings.yaml
python3 stop_thread.py "$agent" >stop.txt &
agents+=("$!")
await_end "$agent"
grep 'The thread that takes samples made no progress for 4 s' hangs.log >/dev/null
sleep 2
kill -CONT "$asleep"
sleep 2
agent=$asleep
kill -0 "$agent"
stop_agent

# systemd's protocol: ready, alive while it is, and when it stops.
cat >notify.py <<'P'
import os, socket, subprocess, sys, time
path = os.path.abspath("notify.sock")
listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.bind(path)
listener.settimeout(60)
environment = dict(os.environ, NOTIFY_SOCKET=path, WATCHDOG_USEC="400000")
agent = subprocess.Popen(sys.argv[1:], env=environment, stderr=open("notify.log", "w"))
try:
    got = [listener.recv(100)]
    assert got == [b"READY=1"], got
    got = [listener.recv(100) for _ in range(3)]
    assert got == [b"WATCHDOG=1"] * 3, got
    agent.terminate()
    while listener.recv(100) != b"STOPPING=1":
        pass
    assert agent.wait() == 0
finally:
    agent.kill()
P
python3 notify.py "$ASSAY" agent --server "$url" --data "$PWD/notified" --config settings.yaml

# Who is ended this way is started again.
"$ASSAY" up --listen 127.0.0.1:0 --data "$PWD/data" --agent-config settings.yaml 2>up.log &
up=$!
agents+=("$up")
until_log() { # TEXT COUNT
    local tries=0
    until [ "$(grep -c "$1" up.log)" -ge "$2" ]; do
        kill -0 "$up"
        if [ $((tries += 1)) -gt 600 ]; then cat up.log >&2; return 1; fi
        sleep 0.1
    done
}
until_log 'Sampling by' 1
child=$(pgrep -P "$up" -f "assay agent" | sed -n 1p)
python3 stop_thread.py "$child" >/dev/null &
agents+=("$!")
until_log 'terminated by signal 6' 1
until_log 'Sampling by' 2
kill -TERM "$up"
wait "$up"

await_end "$stuck"
grep 'The thread that builds requests made no progress for 15 s' stuck.log >/dev/null
