# SPDX-License-Identifier: Apache-2.0
# storms WINDOWS KIND...: what an agent costs in storms of hostile programs, as storms.py says.
type python3 cc >/dev/null || { echo "There is no python3 or no C compiler."; exit 77; }
[ "$(id -u)" = 0 ] || { echo "Storms of other users take root."; exit 77; }

storms() {
    cc -O2 -Wall -pthread -o storm "$ROOT/tests/agent/storm.c"
    "$ASSAY" doctor >doctor.txt 2>&1 || true
    if ! grep -i 'bpf' doctor.txt >/dev/null; then
        echo "There is no BPF."
        exit 77
    fi
    python3 "$ROOT/tests/agent/storms.py" "$ASSAY" "$PWD/storm" "$@"
}
