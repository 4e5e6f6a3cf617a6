# SPDX-License-Identifier: Apache-2.0
# Two checkouts at different paths, with different umasks and without a compiler cache, give packages
# and SBOMs with identical bytes, and neither has a build path in it.
type dpkg-deb dpkg-shlibdeps objdump >/dev/null 2>&1 ||
    { echo "dpkg-deb, dpkg-shlibdeps or objdump is missing."; exit 77; }
[ -d "$ROOT/web/node_modules" ] || { echo "web/node_modules is missing: run ./dev build."; exit 77; }
export SOURCE_DATE_EPOCH=1700000000 CCACHE_DISABLE=1
unset DEV_LOCKED
for directory in one another-checkout; do
    mkdir "$directory"
    tar -C "$ROOT" -c --exclude=./build --exclude='./build-*' --exclude=./dist --exclude=./web/dist \
        --exclude=./.git . | tar -C "$directory" -x
done
(cd one && umask 022 && ./dev package) >one.log 2>&1 || { cat one.log; exit 1; }
(cd another-checkout && umask 077 && ./dev package) >another.log 2>&1 || { cat another.log; exit 1; }
for name in $(cd one/dist && ls); do
    cmp "one/dist/$name" "another-checkout/dist/$name"
    (cd one/dist && sha256sum "$name")
done
ls one/dist/*.deb one/dist/*.cdx.json >/dev/null
dpkg-deb -x one/dist/*.deb installed
if strings installed/usr/bin/assay | grep -F "$PWD"; then
    echo "The program contains a path of the build." && exit 1
fi
