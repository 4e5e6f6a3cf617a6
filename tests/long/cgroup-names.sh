# SPDX-License-Identifier: Apache-2.0
# Processes in cgroups whose names are hostile: control characters, quotes, markup, broken UTF-8, names of
# containers and pods that they aren't, names of the greatest length, deep nesting. The agent goes on,
# samples others, and what reaches the server is valid UTF-8 and valid JSON.
. "$ROOT/tests/agent/common.bash"
[ "$(id -u)" -eq 0 ] || { echo "Only root can make cgroups."; exit 77; }
for top in /sys/fs/cgroup/unified /sys/fs/cgroup/systemd /sys/fs/cgroup; do
    group=$top/assay-names-$$
    mkdir "$group" 2>/dev/null && [ -f "$group/cgroup.procs" ] && break
    group=
done
[ -n "$group" ] || { echo "No cgroup can be made here."; exit 77; }
cleanup() {
    for process in "${agents[@]}" "${servers[@]}"; do kill -9 "$process" 2>/dev/null || true; done
    wait
    find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null || true
}
trap cleanup EXIT
start_server server --data store
start_agent agent --config generous.yaml
need_host agent
OTEL_SERVICE_NAME="honest-$$" ./busy 3 >/dev/null &
agents+=("$!")
python3 - "$group" "$PWD/busy" <<'PYTHON'
import os, subprocess, sys
top, busy = os.fsencode(sys.argv[1]), sys.argv[2]
names = [b"\x1b]0;title\x07", b'"><script>alert(1)</script>', b"quote'\"\\", b"\xff\xfe\xc0\x80", b"x" * 255,
         b"docker-" + b"0" * 64 + b".scope", b"kubepods-besteffort-pod" + b"a" * 32 + b".slice",
         b"{service_name=other}", b"..x", b"%n%s%p", b"=,;|", b" leading", b"tab\there", "\u202eevil".encode()]
running = []
for name in names:
    path = top + b"/" + name
    try:
        os.mkdir(path)
    except OSError as error:
        print(f"{name}: {error.strerror}")
        continue
    process = subprocess.Popen([busy, "0.5"], stdout=subprocess.DEVNULL)
    with open(path + b"/cgroup.procs", "w") as file:
        file.write(str(process.pid))
    running.append(process)
deep = top
for i in range(200):
    deep += b"/d%d" % i
    try:
        os.mkdir(deep)
    except OSError as error:
        print(f"{i} levels: {error.strerror}")
        deep = os.path.dirname(deep)
        break
process = subprocess.Popen([busy, "0.5"], stdout=subprocess.DEVNULL)
with open(deep + b"/cgroup.procs", "w") as file:
    file.write(str(process.pid))
for process in running + [process]:
    process.wait()
PYTHON
kill -0 "$agent"
stop_agent
get "/api/v1/series?query=cpu&$always" >series.json
get "/api/v1/labels?$always" >labels.json
get "/api/v1/flame?query=cpu&$always" >flame.json
"$ASSAY" agent status --data "$PWD/agent" --json >/dev/null 2>&1 || true
python3 - "honest-$$" <<'PYTHON'
import json, sys, unicodedata
for name in ("series", "labels", "flame"):
    text = open(f"{name}.json", encoding="utf-8").read()  # strict: fails on broken UTF-8
    json.loads(text)
    raw = [c for c in text if unicodedata.category(c) == "Cc" and c not in "\n\t"]
    if raw:
        sys.exit(f"{name}.json has control characters: {raw[:5]}")
services = json.dumps(json.load(open("series.json")))
if sys.argv[1] not in services:
    sys.exit("The honest process isn't there.")
PYTHON
if LC_ALL=C grep -a $'[\x01-\x08\x0b-\x1f]' agent.log; then echo "The log has control characters." && exit 1; fi
stop_server
