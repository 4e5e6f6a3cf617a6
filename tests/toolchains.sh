#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# toolchains.sh go|java|node|python3: every version of it that is found here, one per line: "VERSION PATH", the one
# that the PATH finds first. Tests of a toolchain run with each, so that neither the distribution's
# nor a newer one hides what is wrong with the other. $ASSAY_TOOLCHAINS names more programs, with
# colons between.
set -euo pipefail
shopt -s nullglob

tool=$1
case $tool in
go) places=(/usr/local/go/bin/go /usr/lib/go-*/bin/go /usr/lib/go/bin/go) ;;
java) places=(/usr/lib/jvm/*/bin/java) ;;
node) places=(/usr/local/bin/node /usr/bin/node /usr/bin/nodejs) ;;
python3) places=(/usr/bin/python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3) ;;
*) echo "toolchains.sh: go, java, node or python3" >&2 && exit 2 ;;
esac
mapfile -t in_path < <(type -ap "$tool")
IFS=: read -ra more <<<"${ASSAY_TOOLCHAINS:-}"

version_of() {
    case $tool in
    go) GOTOOLCHAIN=local "$1" env GOVERSION ;;
    java) "$1" -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java.version = /java/p' ;;
    node) "$1" --version ;;
    python3) "$1" -c 'import sys; print("python%d.%d.%d" % sys.version_info[:3])' ;;
    esac
}

declare -A seen
for program in "${in_path[@]}" "${places[@]}" "${more[@]}"; do
    [[ -x $program && ${program##*/} == "$tool"* ]] || continue
    version=$(version_of "$program" 2>/dev/null) || continue
    [ -z "${seen[$version]:-}" ] || continue
    seen[$version]=yes
    echo "${version/#v/node} $program"
done
