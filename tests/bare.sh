#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bare.sh [--system bookworm|noble] [--user] [--pids] [--root DIRECTORY] [NAME...]: clones the checkout
# into a minimal Debian 12 or Ubuntu 24.04 and runs `./dev build` and `./dev test NAME...` there, as
# root or, with --user, as an ordinary user with sudo; with --pids, in a pid namespace of its own, as a
# container has. Packages that ./dev forgot are missing there, and toolchains are the distribution's.
#
# debootstrap installs the system in a temporary directory, with the mounts of a container in a
# namespace of its own. All of it is removed at the end, also after a failure or an interrupt. With
# --root, DIRECTORY is used, made if it doesn't exist, and kept. Certificates, proxies and registries
# of this machine are passed on. Called by ./dev test --bare.
set -euo pipefail

proxies=http_proxy,https_proxy,no_proxy,HTTP_PROXY,HTTPS_PROXY,NO_PROXY
ROOT=$(dirname "$(dirname "$(readlink -f "$0")")")
say() { echo "bare: $*" >&2; }
die() { say "$*"; exit 1; }

arguments=("$@")
system=bookworm user=root root='' keep='' inside='' namespaces=(--mount --propagation private)
while [ $# -gt 0 ]; do
    case $1 in
    --system) system=$2 && shift ;;
    --root) root=$(readlink -m "$2") keep=yes && shift ;;
    --user) user=builder ;;
    --pids) namespaces+=(--pid --fork --kill-child) ;;
    --inside) inside=yes ;;
    --) shift && break ;;
    -*) die "unknown option $1" ;;
    *) break ;;
    esac
    shift
done

case $system in
bookworm) components=main keyring=/usr/share/keyrings/debian-archive-keyring.gpg ;;
# Ubuntu's own installations have universe, too.
noble) components=main,universe keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg ;;
*) die "--system is bookworm or noble." ;;
esac

# ---- around it: a mount namespace of its own, and clean-up ----

# Processes that live in the system, whatever started them: their root is the directory.
residents() {
    local process base
    for process in /proc/[0-9]*; do
        base=$(awk '$5 == "/" { print $4 }' "$process/mountinfo" 2>/dev/null) || continue
        [[ $base == */* && $base != / && $root == *"$base" ]] && echo "${process#/proc/}"
    done
    return 0
}

clean_up() {
    local status=$? pids
    trap - EXIT
    trap '' INT TERM HUP
    [ -z "${worker:-}" ] || kill -KILL -- "-$worker" 2>/dev/null || true
    for _ in {1..50}; do
        pids=$(residents)
        [ -n "$pids" ] || break
        # shellcheck disable=SC2086
        kill -KILL $pids 2>/dev/null || true
        sleep 0.1
    done
    # The mounts were in a namespace that ended with its last process. If one is left, nothing in it
    # is removed.
    rm -f "$root.log"
    [ -n "$keep" ] || rm -rf --one-file-system "$root"
    exit "$status"
}

# An ordinary user's registry and proxies are passed on through sudo.
become_root() {
    local name value
    command -v sudo >/dev/null || die "this needs root: run it as root, or install sudo."
    for name in registry proxy https-proxy; do
        value=$(npm config get "$name" 2>/dev/null || echo null)
        [ "$value" = null ] || export "npm_config_${name//-/_}=$value"
    done
    exec sudo --preserve-env="$proxies,npm_config_registry,npm_config_proxy,npm_config_https_proxy" \
        bash "$0" "$@"
}

outside() {
    [ "$(id -u)" -eq 0 ] || become_root "${arguments[@]}"
    command -v debootstrap >/dev/null || die "debootstrap is not installed."
    unshare --mount true 2>/dev/null || die "this user may not mount anything here."
    [ -n "$keep" ] || root=$(mktemp -d /var/tmp/assay-bare.XXXXXX)
    trap clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    arguments=(--inside --system "$system" --root "$root")
    [ "$user" = root ] || arguments+=(--user)
    setsid unshare "${namespaces[@]}" bash "$0" "${arguments[@]}" -- "$@" </dev/null &
    worker=$!
    wait "$worker"
}

# ---- in the namespace ----

# The mirror that this machine uses, when it is the same system.
own_mirror() {
    # shellcheck disable=SC2016 # apt's own variables
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' \
        2>/dev/null | awk -v suite="$system" '$2 == suite && $3 == "main" && !n++ { print $1 }' || true
}

make_system() {
    [ ! -e "$root/etc/os-release" ] || return 0
    local scripts=/usr/share/debootstrap/scripts script=$system own
    keyring=${ASSAY_BARE_KEYRING:-$keyring}
    [ -e "$keyring" ] || die "$keyring is missing, which signs the packages: install it from" \
        "ubuntu-keyring or debian-archive-keyring, or name another with ASSAY_BARE_KEYRING."
    # A debootstrap that is older than the release has no script for it; all of Ubuntu's are alike.
    [ -e "$scripts/$script" ] || script=jammy
    own=$(own_mirror) # or the script's own
    say "installing $system in $root"
    mkdir -p "$root"
    debootstrap --variant=minbase --components="$components" --keyring="$keyring" \
        "$system" "$root" "$own" "$scripts/$script" >"$root.log" 2>&1 || {
        tail -n 20 "$root.log" >&2
        rm -f "$root.log"
        die "debootstrap failed."
    }
    rm -f "$root.log"
}

mount_all() {
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/run"
    mountpoint -q "$root/sys/fs/bpf" || mount -t bpf bpf "$root/sys/fs/bpf" || true
    mountpoint -q "$root/sys/kernel/tracing" || mount -t tracefs tracefs "$root/sys/kernel/tracing" || true
}

# Names, certificates, proxies and registries: what it takes to reach packages from here.
settings=(LANG=C.UTF-8 "TERM=${TERM:-dumb}" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
pass_settings() {
    local name value file certificates=/etc/ssl/certs/ca-certificates.crt
    for file in /etc/resolv.conf /etc/hosts; do
        [ ! -e "$file" ] || cat "$file" >"$root$file"
    done
    apt-config dump | grep -E '^Acquire::(https?::|Check-Valid-Until|ForceIPv[46]|Retries)' \
        >"$root/etc/apt/apt.conf.d/99host" || true
    for name in http_proxy https_proxy; do
        value=${!name:-}
        [ -z "$value" ] ||
            echo "Acquire::${name%_proxy}::Proxy \"$value\";" >>"$root/etc/apt/apt.conf.d/99host"
    done
    for name in ${proxies//,/ }; do
        [ -z "${!name:-}" ] || settings+=("$name=${!name}")
    done
    # ca-certificates adds them to the system's own, at the latest when ./dev installs it there.
    file=$root/usr/local/share/ca-certificates/host
    mkdir -p "$file"
    [ ! -e "$certificates" ] || awk -v directory="$file" '/BEGIN CERTIFICATE/ { n++ }
        n { print >(directory "/" n ".crt") } /END CERTIFICATE/ { close(directory "/" n ".crt") }' \
        "$certificates"
    settings+=(NODE_EXTRA_CA_CERTS=$certificates)
    HOME=$(getent passwd "$(id -u)" | cut -d : -f 6) # a test's home is empty
    value=$(go env GOPROXY 2>/dev/null || true)
    [ -z "$value" ] || settings+=("GOPROXY=$value")
    command -v npm >/dev/null || return 0
    for name in registry proxy https-proxy; do
        value=$(npm config get "$name" 2>/dev/null || echo null)
        [ "$value" = null ] || settings+=("npm_config_${name//-/_}=$value")
    done
}

# As a container's, the directory becomes the root of the namespace: from a chroot, paths in other
# namespaces look different.
enter_system() {
    mkdir -p "$root/.host"
    cd "$root"
    pivot_root . .host
    cd /
    umount -l /.host
    rmdir /.host
}

# in_system USER DIRECTORY COMMAND...
in_system() {
    local home
    home=$(getent passwd "$1" | cut -d : -f 6)
    # shellcheck disable=SC2016 # of the other shell
    setpriv --reuid "$1" --regid "$1" --init-groups env -i "${settings[@]}" \
        "HOME=$home" "USER=$1" bash -c 'cd "$1" && shift && exec "$@"' bash "${@:2}"
}

add_user() {
    in_system root / bash -c 'apt-get -q update && apt-get -q install -y --no-install-recommends sudo' \
        >/dev/null
    in_system root / id "$user" >/dev/null 2>&1 || in_system root / useradd --create-home "$user"
    echo "$user ALL=(ALL) NOPASSWD: ALL" >"/etc/sudoers.d/$user"
}

clone() {
    local target=$root$checkout
    [ -z "$(git -C "$ROOT" status --porcelain 2>&1)" ] || say "uncommitted changes are not part of it"
    if [ -d "$target" ]; then
        git -C "$target" fetch -q origin
        git -C "$target" checkout -q "$(git -C "$ROOT" rev-parse HEAD)"
    else
        git clone -q --no-hardlinks "file://$ROOT" "$target"
    fi
}

inside() {
    export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
    make_system
    mount_all
    pass_settings
    checkout=/srv/assay
    clone
    enter_system
    ! command -v update-ca-certificates >/dev/null || update-ca-certificates >/dev/null 2>&1
    [ "$user" = root ] || add_user
    in_system root / chown -R "$user:$user" "$checkout"
    say "./dev build and ./dev test $* in $(. /etc/os-release && echo "$PRETTY_NAME"), as $user"
    in_system "$user" "$checkout" ./dev build
    in_system "$user" "$checkout" ./dev test "$@"
}

# One command: this file may be edited while it runs.
{
    if [ -n "$inside" ]; then inside "$@"; else outside "$@"; fi
    exit
}
