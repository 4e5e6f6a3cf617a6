# SPDX-License-Identifier: Apache-2.0
# A program of a local user whose table of functions takes 200 MB, nearly all of it a hole in the file:
# the agent leaves the table out, says so, and keeps to its memory limit.
. "$ROOT/tests/agent/common.bash"
type objcopy >/dev/null || { echo "There is no objcopy."; exit 77; }
export ASSAY_CACHE=$PWD/cache
python3 - <<'PYTHON'
with open("head", "wb") as file:
    file.write(bytes.fromhex("f1ffffff00000108") + bytes(4096))
PYTHON
objcopy --add-section .gopclntab=head busy "large-$$"
python3 - "large-$$" <<'PYTHON'
import struct, sys
SIZE = 200 << 20
with open(sys.argv[1], "r+b") as file:
    data = file.read()
    headers, = struct.unpack_from("<Q", data, 0x28)
    count, names = struct.unpack_from("<2H", data, 0x3c)
    text, = struct.unpack_from("<Q", data, headers + 64 * names + 24)
    for at in range(headers, headers + 64 * count, 64):
        name = text + struct.unpack_from("<I", data, at)[0]
        if data[name:data.index(b"\0", name)] == b".gopclntab":
            offset, = struct.unpack_from("<Q", data, at + 24)
            end = (len(data) + 4095) & ~4095
            file.seek(end)
            file.write(data[offset:offset + 8])
            file.truncate(end + SIZE)
            file.seek(at + 24)
            file.write(struct.pack("<2Q", end, SIZE))
PYTHON
start_server server --data store
start_agent one
need_host one
refusals() {
    status_of one
    json one.status.json 'int(d["memory_refusals"])'
}
before=$(refusals)
"./large-$$" 600 >/dev/null &
agents+=("$!") # ends with the test
tries=0
until [ "$(refusals)" -gt "$before" ]; do
    [ $((tries += 1)) -lt 1200 ] || { echo "The table was not looked at." >&2; exit 1; }
    sleep 0.1
done
sleep 1
peak=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$agent/status")
echo "$peak KiB at most"
json one.status.json "$peak * 1024 < d['budget_memory_limit']"
stop_agent
stop_server
