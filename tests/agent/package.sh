# SPDX-License-Identifier: Apache-2.0
# What is packaged: the Debian package has all it should, and what is in it runs; the settings are
# settings; units and manifests can be read, and ask for the capabilities that the agent keeps.
type dpkg-deb dpkg-shlibdeps strip >/dev/null 2>&1 ||
    { echo "dpkg-deb, dpkg-shlibdeps or strip is missing."; exit 77; }

package=$("$ROOT/packaging/package.sh" "$(dirname "$ASSAY")" out)
# The same build gives the same bytes.
again=$(umask 077 && "$ROOT/packaging/package.sh" "$(dirname "$ASSAY")" again)
cmp "$package" "$again"
cmp "${package%.deb}.cdx.json" "${again%.deb}.cdx.json"
dpkg-deb -I "$package" >information.txt
grep '^ Package: assay$' information.txt >/dev/null
grep '^ Depends: .*libc6' information.txt >/dev/null
dpkg-deb -c "$package" >list.txt
for file in usr/bin/assay usr/bin/assay-simulate usr/share/man/man1/assay-agent.1.gz usr/share/man/man1/assay-demo.1.gz \
    lib/systemd/system/assay-server.service lib/systemd/system/assay-agent.service \
    etc/assay/server.yaml etc/assay/agent.yaml usr/include/assay.h usr/share/doc/assay/copyright \
    usr/share/doc/assay/sbom.cdx.json \
    usr/share/doc/assay/agent.example.yaml usr/share/doc/assay/kubernetes/agent.yaml; do
    grep " root/root .* \./$file\$" list.txt >/dev/null || { echo "There is no $file."; exit 1; }
done
dpkg-deb -x "$package" root
dpkg-deb -e "$package" control
[ "$(cat control/conffiles)" = $'/etc/assay/agent.yaml\n/etc/assay/server.yaml' ]
(cd root && md5sum --quiet -c ../control/md5sums)
for script in postinst prerm postrm; do sh -n "control/$script"; done
[ "$(root/usr/bin/assay --version)" = "$("$ASSAY" --version)" ]
root/usr/bin/assay agent --check-config --config root/etc/assay/agent.yaml
root/usr/bin/assay server --check-config --config root/etc/assay/server.yaml
root/usr/bin/assay demo --seconds 0.2 2>/dev/null | grep -c 'demo-shop [12].0: [1-9]' | grep -x 2

# The SBOM describes this program: its digest, the BPF objects that it would load, its libraries.
sbom=root/usr/share/doc/assay/sbom.cdx.json
cmp "$sbom" "${package%.deb}.cdx.json"
[ "$(jq -r '.metadata.component.hashes[0].content' "$sbom")" = \
    "$(sha256sum root/usr/bin/assay | cut -d' ' -f1)" ]
jq -r '.components[] | select(.type == "file") | "\(.name) \(.hashes[0].content)"' "$sbom" | sort >listed.txt
{ root/usr/bin/assay doctor --json || true; } |
    jq -r '.bpf_objects[] | "\(.name) \(.sha256)"' | sort >loaded.txt
[ "$(wc -l <loaded.txt)" -ge 2 ]
diff listed.txt loaded.txt
jq -e '.bomFormat == "CycloneDX" and ([.components[]["bom-ref"]] | length == (unique | length))' \
    "$sbom" >/dev/null
jq -r '.components[].name' "$sbom" | grep -x -e libc6 -e libsqlite3-0 -e preact -e libiberty-dev |
    wc -l | grep -x 4
# Programs that lack a property are found out.
printf 'int main(void) { return 0; }\n' >weak.c
gcc -no-pie -fcf-protection=none -Wl,-z,norelro -Wl,-z,lazy -Wl,-z,execstack -Wl,-rpath,/tmp \
    -o weak weak.c 2>/dev/null
if python3 "$ROOT/packaging/hardening.py" weak >weak.txt; then exit 1; fi
grep -c '^no ' weak.txt | grep -x 8
grep -x 'yes  no writable code' weak.txt

if type systemd-analyze >/dev/null 2>&1; then
    mkdir units
    for unit in root/lib/systemd/system/*.service; do
        sed "s|/usr/bin/assay|$PWD/root/usr/bin/assay|" "$unit" >"units/$(basename "$unit")"
    done
    systemd-analyze verify --man=no units/*.service 2>verify.txt || { cat verify.txt >&2; exit 1; }
    if grep units/ verify.txt; then exit 1; fi
fi
if type lintian >/dev/null 2>&1; then
    lintian --fail-on error,warning "$package" 2>/dev/null
fi

# The agent's capabilities are the same everywhere.
# What it keeps, and what it drops after the start.
{
    sed -n 's/^ *CAP_\([A-Z_]*\),.*/\1/p' "$ROOT/src/agent/guard/privilege.c"
    echo SYS_ADMIN
} | sort -u >kept.txt
[ -s kept.txt ]
sed -n 's/^CapabilityBoundingSet=//p' root/lib/systemd/system/assay-agent.service | tr ' ' '\n' |
    sed 's/^CAP_//' | sort -u | diff kept.txt -
sed -n 's/^ *add: \[\(.*\)\]$/\1/p' "$ROOT/packaging/kubernetes/agent.yaml" | tr -d ' ' | tr ',' '\n' |
    sort -u | diff kept.txt -
# And so is the directory that it keeps unwind rows in as root.
grep '"/var/cache/assay/' "$ROOT/src/capture/record/rowcache.c" >/dev/null
grep -x 'CacheDirectory=assay' root/lib/systemd/system/assay-agent.service >/dev/null

# Manifests: every document has what Kubernetes asks of all, names fit each other, and the settings
# inside are good ones.
if ! python3 -c 'import yaml' 2>/dev/null; then
    echo "python3 has no yaml module: the manifests were not read."
    exit 77
fi
python3 - "$ROOT"/packaging/kubernetes/*.yaml <<'PYTHON'
import sys, yaml
kinds = {}
for path in sys.argv[1:]:
    for document in yaml.safe_load_all(open(path)):
        kind, name = document["kind"], document["metadata"]["name"]
        namespace = None if kind.startswith("Cluster") else "assay"
        assert document["apiVersion"] and document["metadata"].get("namespace") == namespace, path
        kinds[kind, name] = document
        if kind == "ConfigMap":
            for file, text in document["data"].items():
                open(file, "w").write(text)
for (kind, name), document in kinds.items():
    if kind not in ("DaemonSet", "Deployment"):
        continue
    spec = document["spec"]["template"]["spec"]
    labels = document["spec"]["template"]["metadata"]["labels"]
    assert document["spec"]["selector"]["matchLabels"].items() <= labels.items(), name
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    for volume in volumes.values():
        if "configMap" in volume:
            assert ("ConfigMap", volume["configMap"]["name"]) in kinds, volume
        if "persistentVolumeClaim" in volume:
            assert ("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]) in kinds
    for container in spec["containers"]:
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted == set(volumes), (name, mounted ^ set(volumes))
        context = container["securityContext"]
        assert not context.get("privileged") and context["readOnlyRootFilesystem"], name
        assert context["capabilities"]["drop"] == ["ALL"], name
agent = kinds["DaemonSet", "assay-agent"]["spec"]["template"]["spec"]["containers"][0]
assert "/var/cache/assay" in {mount["mountPath"] for mount in agent["volumeMounts"]}
service = kinds["Service", "assay-server"]["spec"]["selector"]
assert service.items() <= kinds["Deployment", "assay-server"]["metadata"]["labels"].items()
PYTHON
"$ASSAY" agent --check-config --config agent.yaml
"$ASSAY" server --check-config --config server.yaml
