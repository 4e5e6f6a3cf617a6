# SPDX-License-Identifier: Apache-2.0
# Everything again in a minimal Debian 12, with its own toolchains and nothing else: tests/bare.sh.
skip() { echo "$*" && exit 77; }
command -v debootstrap >/dev/null || skip "debootstrap is not installed."
[ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null || skip "This user can't become root here."
unshare --mount true 2>/dev/null || sudo -n unshare --mount true 2>/dev/null ||
    skip "Nothing can be mounted here."
bash "$ROOT/tests/bare.sh"
