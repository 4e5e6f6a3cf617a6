# SPDX-License-Identifier: Apache-2.0
# The Debian package, installed into a copy of this machine that is thrown away: its dependencies are
# what the program is linked with; server and agent run as their units start them, with these
# capabilities, this user and nothing else to write to; a second installation keeps settings that were
# changed, removal keeps data, and purging leaves nothing.
if [ -z "${INSIDE:-}" ]; then
    [ "$(id -u)" = 0 ] || { echo "Installing a package takes root."; exit 77; }
    for tool in dpkg dpkg-shlibdeps strip readelf unshare chroot setpriv ip adduser curl python3; do
        type "$tool" >/dev/null 2>&1 || { echo "$tool is missing."; exit 77; }
    done
    unshare --mount --net true 2>/dev/null ||
        { echo "This user may not make mount and network namespaces."; exit 77; }
    INSIDE=yes exec unshare --mount --net --propagation private \
        bash -euo pipefail "$ROOT/tests/long/agent-install.sh"
fi
pids=()
trap 'for p in "${pids[@]}"; do kill -9 "$p" 2>/dev/null || true; done' EXIT
ip link set lo up # the packaged settings have a port, which is this test's alone here

# The copy: what is written goes to memory.
mkdir layers root
mount -t tmpfs tmpfs layers
mkdir layers/upper layers/work
mount -t overlay overlay -o "lowerdir=/,upperdir=$PWD/layers/upper,workdir=$PWD/layers/work" root 2>/dev/null ||
    { echo "No file system can be laid over this one."; exit 77; }
[ -s root/var/lib/dpkg/status ] && [ -x root/usr/bin/dpkg ] ||
    { echo "The root file system has not all of dpkg."; exit 77; }
for folder in proc sys dev; do mount --rbind "/$folder" "root/$folder"; done
mount -t tmpfs tmpfs root/run
mount -t tmpfs tmpfs root/tmp
within() { env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C chroot root "$@"; }
install_it() { within dpkg --force-confold -i "/tmp/$(basename "$package")" >dpkg.log 2>&1 || { cat dpkg.log >&2; return 1; }; }
if within dpkg-query -W assay >/dev/null 2>&1 || [ -e root/etc/assay ] || within getent passwd assay >/dev/null; then
    echo "A package of this name, or what it left, is installed here."
    exit 77
fi

package=$("$ROOT/packaging/package.sh" "$(dirname "$ASSAY")" out)
cp "$package" root/tmp/
depends=$(dpkg-deb -f "$package" Depends)
for name in $(tr ',' '\n' <<<"$depends" | sed 's/^ *\([^ ]*\).*/\1/'); do
    [[ $(within dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) == installed ]] ||
        { echo "dpkg knows of no $name here."; exit 77; }
done

# ---- installed ----

# As if systemd ran here: what is asked of it is written down.
mkdir -p root/run/systemd/system root/usr/local/sbin
for tool in systemctl deb-systemd-invoke; do
    printf '#!/bin/sh\necho "%s $*" >>/run/asked\n' "$tool" >"root/usr/local/sbin/$tool"
    chmod +x "root/usr/local/sbin/$tool"
done
: >root/run/asked
install_it
[[ $(within dpkg-query -W -f '${db:Status-Status}' assay) == installed ]]
[ -z "$(within dpkg --verify assay)" ]
[[ $(within getent passwd assay) == assay:*:/nonexistent:*nologin ]]
[ "$(cat root/run/asked)" = 'systemctl --system daemon-reload' ] # nothing is started or enabled
within /usr/bin/assay --version >/dev/null

# Each library that it names is found, in a package that it depends on; and it depends on no other.
# In the host's root, where dpkg knows them by either name of a merged /usr.
packages=$(readelf -d root/usr/bin/assay | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | while read -r library; do
    path=$(within ldd /usr/bin/assay | sed -n "s|^[^/]*$library => \(/[^ ]*\) .*|\1|p")
    [ -n "$path" ] || path=$(within ldd /usr/bin/assay | sed -n "s|^[^/]*\(/[^ ]*$library\) .*|\1|p")
    path=$(within readlink -f "$path")
    within dpkg -S "$path" 2>/dev/null || within dpkg -S "${path#/usr}"
done | sed 's/:.*//' | sort -u)
tr ',' '\n' <<<"$depends" | sed 's/^ *\([^ ]*\).*/\1/' | grep -v -x adduser | sort -u | diff - <(echo "$packages")

if type systemd-analyze >/dev/null 2>&1; then
    within systemd-analyze verify --man=no /lib/systemd/system/assay-{server,agent}.service >verify.txt 2>&1 ||
        { cat verify.txt; exit 1; }
    if grep 'assay-' verify.txt; then exit 1; fi
fi

# ---- running ----

unit_has() { sed -n "s/^$2=//p" "root/lib/systemd/system/assay-$1.service"; } # UNIT KEY
for unit in server agent; do
    owner=$(unit_has "$unit" User)
    for kind in State:/var/lib Cache:/var/cache Runtime:/run; do
        folder=$(unit_has "$unit" "${kind%:*}Directory")
        [ -z "$folder" ] || within install -d -m 0700 -o "${owner:-root}" "${kind#*:}/$folder"
    done
done
# All else is read-only, as ProtectSystem=strict has it.
mount --rbind root root
written=(root/var/lib/assay-server root/var/lib/assay-agent root/var/cache/assay)
for folder in "${written[@]}"; do mount --bind "$folder" "$folder"; done
mount -o remount,ro,bind root
if touch root/etc/x 2>/dev/null; then exit 1; fi
# start UNIT: its command line with what it may do.
start() {
    local name owner capabilities=-all
    local words=(chroot "$PWD/root" setpriv --no-new-privs --inh-caps=-all)
    for name in $(unit_has "$1" CapabilityBoundingSet); do
        name=${name#CAP_}
        capabilities+=",+${name,,}"
    done
    words+=("--bounding-set=$capabilities")
    owner=$(unit_has "$1" User)
    [ -z "$owner" ] || words+=(--reuid "$owner" --regid "$(unit_has "$1" Group)" --clear-groups)
    read -r -a command < <(unit_has "$1" ExecStart)
    : >"$1.log"
    (
        umask "$(unit_has "$1" UMask)"
        exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C "${words[@]}" "${command[@]}" 2>"$1.log"
    ) &
    pids+=("$!")
    last=$!
}
# until_true PID COMMAND...
until_true() {
    local tries=0 pid=$1
    shift
    until "$@"; do
        kill -0 "$pid" && [ $((tries += 1)) -lt 1200 ] || { tail -n 20 ./*.log >&2; return 1; }
        sleep 0.1
    done
}
start server
server=$last
until_true "$server" grep 'serving on http://127.0.0.1:4040' server.log >/dev/null
start agent
agent=$last
until_true "$agent" grep 'Sampling by' agent.log >/dev/null
grep '^CapEff:.*0000000000000000$' "/proc/$server/status" >/dev/null
[[ $(stat -c %U "/proc/$server" 2>/dev/null) != root ]]
if grep 'of this user' agent.log; then echo "These capabilities sample nothing here."; exit 77; fi
uploaded() {
    within curl -sS --unix-socket /run/assay/agent.sock http://localhost/metrics >metrics.txt &&
        grep -E '^assay_agent_upload_bytes_total [1-9]' metrics.txt >/dev/null
}
until_true "$agent" uploaded
[[ $(within /usr/bin/assay agent status) == 'sampling  by '* ]]
grep -E '^assay_agent_upload_failures_total 0$' metrics.txt >/dev/null
[[ $(curl -sS "http://127.0.0.1:4040/api/v1/label/service_name/values") == '["'* ]]
# Rows of binaries are kept for the next start. The directory's path is in no setting.
if grep 'Sampling by BPF' agent.log >/dev/null; then
    [ -n "$(find root/var/cache/assay/unwind -name '*.rows')" ]
fi
for pid in "$agent" "$server"; do
    kill -TERM "$pid"
    wait "$pid"
done
for unit in server agent; do
    if grep -i -E 'denied|read-only|not permitted' "$unit.log"; then exit 1; fi
    [ -n "$(find "root/var/lib/assay-$unit" -type f)" ]
done

# ---- again, and gone ----

umount "${written[@]}"
mount -o remount,rw,bind root
echo '# mine' >>root/etc/assay/agent.yaml
: >root/run/asked
install_it
grep -x '# mine' root/etc/assay/agent.yaml >/dev/null
grep 'deb-systemd-invoke try-restart assay-server.service assay-agent.service' root/run/asked >/dev/null
[ -n "$(find root/var/lib/assay-agent -type f)" ]

: >root/run/asked
within dpkg -r assay >dpkg.log 2>&1 || { cat dpkg.log; exit 1; }
grep 'deb-systemd-invoke stop assay-agent.service assay-server.service' root/run/asked >/dev/null
[ ! -e root/usr/bin/assay ]
grep -x '# mine' root/etc/assay/agent.yaml >/dev/null
[ -n "$(find root/var/lib/assay-server -type f)" ]

mkdir -p root/etc/systemd/system/multi-user.target.wants
ln -s /lib/systemd/system/assay-agent.service root/etc/systemd/system/multi-user.target.wants/
within dpkg --purge assay >dpkg.log 2>&1 || { cat dpkg.log; exit 1; }
if within dpkg-query -W -f '${db:Status-Status}\n' assay 2>/dev/null | grep -v not-installed; then exit 1; fi
# The user stays, for files that may still be its own; all else is gone. A device is what marks that
# something of the machine itself was removed.
within getent passwd assay >/dev/null
find layers/upper root/run ! -type c \( -iname '*assay*' -o -lname '*assay*' \) >left.txt
if [ -s left.txt ]; then
    cat left.txt
    exit 1
fi
