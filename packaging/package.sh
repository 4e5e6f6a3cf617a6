#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# package.sh BUILD-DIRECTORY OUTPUT-DIRECTORY: a Debian package of what was built there, with its SBOM
# inside and beside it; prints the package's name. Needs no root. `./dev package` builds first. The
# same build and $SOURCE_DATE_EPOCH give the same bytes.
set -euo pipefail
export LC_ALL=C TZ=UTC

build=$(readlink -f "$1")
mkdir -p "$2"
output=$(readlink -f "$2")
here=$(dirname "$(readlink -f "$0")")
root=$(dirname "$here")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
umask 022
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
    # The last commit's time; without git, the build description's.
    SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct 2>/dev/null ||
        stat -c %Y "$root/meson.build")
fi
export SOURCE_DATE_EPOCH

put() { install -D -m "$1" "$2" "$tree/$3"; } # MODE FILE PLACE
put_gzip() { install -d "$tree/$(dirname "$2")" && gzip -9n <"$1" >"$tree/$2"; }

version=$("$build/assay" --version | sed 's/^assay //')
architecture=$(dpkg --print-architecture)

# Without debug information; with the symbols that name its own frames.
for program in assay assay-simulate; do
    put 755 "$build/$program" "usr/bin/$program"
    strip --strip-debug --remove-section=.comment --remove-section=.note "$tree/usr/bin/$program"
done
library=usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)/assay/libassay_heap.so
put 644 "$build/sdk/libassay_heap.so" "$library"
strip --strip-unneeded --remove-section=.comment "$tree/$library"
library=usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)/assay/libassay.so.1
put 644 "$build/sdk/libassay.so.1.0.0" "$library"
strip --strip-unneeded --remove-section=.comment "$tree/$library"
put 644 "$root/sdk/c/assay.h" usr/include/assay.h
for page in "$root"/man/*.1; do
    put_gzip "$page" "usr/share/man/man1/$(basename "$page").gz"
done
for unit in "$here"/systemd/*.service; do
    put 644 "$unit" "lib/systemd/system/$(basename "$unit")"
done
put 644 "$here/config/server.yaml" etc/assay/server.yaml
put 644 "$here/config/agent.yaml" etc/assay/agent.yaml
for file in "$root"/docs/{server,agent,rules}.example.yaml; do
    put 644 "$file" "usr/share/doc/assay/$(basename "$file")"
done
for file in "$here"/kubernetes/*.yaml; do
    put 644 "$file" "usr/share/doc/assay/kubernetes/$(basename "$file")"
done
put 644 "$here/prometheus/assay.rules.yml" usr/share/doc/assay/prometheus/assay.rules.yml
for file in "$here"/grafana/*.json; do
    put 644 "$file" "usr/share/doc/assay/grafana/$(basename "$file")"
done
for file in "$root"/docs/runbooks/*.md; do
    put 644 "$file" "usr/share/doc/assay/runbooks/$(basename "$file")"
done
put 644 "$here/debian/copyright" usr/share/doc/assay/copyright
put 644 "$here/debian/lintian-overrides" usr/share/lintian/overrides/assay
printf 'assay (%s) unstable; urgency=medium\n\n  * This version.\n\n -- %s  %s\n' "$version" \
    "$(sed -n 's/^Maintainer: //p' "$here/debian/control.in")" \
    "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" >"$work/changelog"
put_gzip "$work/changelog" usr/share/doc/assay/changelog.gz

python3 "$here/sbom.py" "$build" "$tree" "$version" "$work/sbom.json"
put 644 "$work/sbom.json" usr/share/doc/assay/sbom.cdx.json

# Which packages have the libraries it is linked with.
mkdir -p "$work/debian"
printf 'Source: assay\n\nPackage: assay\nArchitecture: any\nDescription: x\n' >"$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O -e"$tree/usr/bin/assay" -e"$tree/usr/bin/assay-simulate" 2>"$work/complaints" |
    sed -n 's/^shlibs:Depends=//p')
[ -n "$depends" ] || { cat "$work/complaints" >&2; exit 1; }

# As Debian's policy counts: each file in whole KiB, everything else as one. du(1) would count the
# blocks of this file system.
size=$(find "$tree" -printf '%y %s\n' |
    awk '{ total += $1 == "f" ? int(($2 + 1023) / 1024) : 1 } END { print total }')
install -d "$tree/DEBIAN"
sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$architecture/" -e "s/@DEPENDS@/$depends/" \
    -e "s/@SIZE@/$size/" "$here/debian/control.in" \
    >"$tree/DEBIAN/control"
(cd "$tree" && find etc -type f -printf '/%p\n' | sort) >"$tree/DEBIAN/conffiles"
(cd "$tree" && find usr lib -type f | sort | xargs md5sum) >"$tree/DEBIAN/md5sums"
for script in postinst prerm postrm; do
    install -m 755 "$here/debian/$script" "$tree/DEBIAN/$script"
done
package=$output/assay_${version}_$architecture.deb
# One thread: how xz cuts its input depends on their number.
dpkg-deb --root-owner-group --threads-max=1 -Zxz --build "$tree" "$package" >/dev/null
install -m 644 "$work/sbom.json" "${package%.deb}.cdx.json"
echo "$package"
