# SPDX-License-Identifier: Apache-2.0
# The Helm chart: lint, templates of both modes decoded strictly as Kubernetes' own types, the
# settings inside checked by the program, values that can't work refused. $HELM is a helm that is
# built already.
chart=$ROOT/packaging/helm/assay
cmp "$chart/files/assay.rules.yml" "$ROOT/packaging/prometheus/assay.rules.yml"
python3 -c 'import json, sys
for file in sys.argv[1:]: json.load(open(file))' "$chart/values.schema.json" "$chart/files/assay-dashboard.json"
python3 -c 'import yaml' 2>/dev/null || { echo "python3 has no yaml module."; exit 77; }
type go >/dev/null 2>&1 || { echo "go is missing."; exit 77; }

export GOPATH=${HELM_GOPATH:-$PWD/path} GOFLAGS=-modcacherw GOTOOLCHAIN=local
mkdir check
cp "$ROOT"/tests/long/helm/main.go check
cd check
printf 'module check\n\ngo 1.25\n' >go.mod
if ! timeout 400 go get k8s.io/api@v0.37.0 sigs.k8s.io/yaml@v1.6.0 k8s.io/apimachinery@v0.37.0 >get.log 2>&1 ||
    ! timeout 400 go mod tidy >>get.log 2>&1; then
    tail -n 3 get.log
    echo "Kubernetes' types can't be had here: they need Go 1.26 and modules that can't be downloaded."
    exit 77
fi
timeout 900 go build -o check .
cd ..
helm=${HELM:-$(type -P helm || true)}
if [ -z "$helm" ]; then
    mkdir build
    cd build
    printf 'module build\n\ngo 1.25\n' >go.mod
    if ! timeout 400 go get helm.sh/helm/v3/cmd/helm@v3.22.0 >get.log 2>&1; then
        tail -n 3 get.log
        echo "Helm can't be built here: it needs Go 1.26 and modules that can't be downloaded."
        exit 77
    fi
    timeout 1800 go build -o helm helm.sh/helm/v3/cmd/helm
    helm=$PWD/helm
    cd ..
fi

"$helm" lint --strict "$chart"
render() {
    "$helm" template release "$chart" --namespace profiles --kube-version 1.30.0 "$@" >out.yaml
    check/check <out.yaml
    "$helm" lint --strict "$chart" "$@" >/dev/null
}
# What is rendered fits together, and its settings are good ones.
examine() {
    rm -f agent.yaml server.yaml
    python3 - <<'PYTHON'
import yaml
documents = [d for d in yaml.safe_load_all(open("out.yaml")) if d]
kinds = {(d["kind"], d["metadata"]["name"]): d for d in documents}
for (kind, name), document in kinds.items():
    if kind == "ConfigMap":
        for file, text in document["data"].items():
            open(file, "w").write(text)
    if kind not in ("DaemonSet", "StatefulSet", "Job"):
        continue
    template = document["spec"]["template"]
    labels, spec = template["metadata"]["labels"], template["spec"]
    if kind != "Job":
        assert document["spec"]["selector"]["matchLabels"].items() <= labels.items(), name
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    for volume in volumes.values():
        if "configMap" in volume:
            assert ("ConfigMap", volume["configMap"]["name"]) in kinds, volume
    claims = {c["metadata"]["name"] for c in document["spec"].get("volumeClaimTemplates", [])}
    for container in spec["containers"]:
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted == set(volumes) | claims, (name, mounted ^ (set(volumes) | claims))
        context = container["securityContext"]
        assert not context.get("privileged") and context["readOnlyRootFilesystem"], name
        assert context["capabilities"]["drop"] == ["ALL"] and container["resources"]["limits"], name
pods = [d["spec"]["template"]["metadata"]["labels"] for (k, n), d in kinds.items() if k == "StatefulSet"]
for (kind, name), document in kinds.items():
    if kind == "Service":
        assert document["spec"]["selector"].items() <= pods[0].items(), name
    if kind == "ServiceMonitor":
        wanted = document["spec"]["selector"]["matchLabels"].items()
        assert [1 for (k, n), d in kinds.items() if k == "Service" and wanted <= d["metadata"]["labels"].items()] == [1]
plain = list(yaml.safe_load_all(open(f"{__import__('os').environ['ROOT']}/packaging/kubernetes/agent.yaml")))
for (kind, name), document in kinds.items():
    if kind == "DaemonSet":
        both = [d["spec"]["template"]["spec"]["containers"][0]["securityContext"]["capabilities"]
                for d in (document, plain[1])]
        assert both[0] == both[1], both
PYTHON
    "$ASSAY" server --check-config --config server.yaml
    [ ! -e agent.yaml ] || "$ASSAY" agent --check-config --config agent.yaml
}
export ROOT

render
examine
grep -q 'insecure: true' server.yaml
grep -q 'url: http://release-assay-server.profiles.svc:4040' agent.yaml
render --set agent.enabled=false --set networkPolicy.enabled=false --set server.config.watch.enabled=false
[ "$(grep -c DaemonSet out.yaml)" = 0 ]
examine

# With ClickHouse and TLS, and everything on. The program reads the files that the chart mounts, so
# that their places are changed to ours for the check.
render --set mode=clickhouse,server.replicas=3,tls.secret=tls --set 'clickhouse.url=clickhouse://assay@a:8443\,b:8443/assay?cluster=main&tls=1' \
    --set clickhouse.passwordSecret.name=password,clickhouse.caSecret.name=authority \
    --set metrics.serviceMonitor=true,metrics.rules=true,metrics.dashboard=true,metrics.tokenSecret.name=reader
for kind in ServiceMonitor PrometheusRule PodDisruptionBudget Job; do grep -qx "kind: $kind" out.yaml; done
type openssl >/dev/null || { echo "openssl is missing."; exit 77; }
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout tls.key \
    -out tls.crt -subj /CN=localhost 2>/dev/null
cp tls.crt ca.crt
echo secret >password
echo token >token
"$ASSAY" token create --tokens-file tokens --name reader --role read >/dev/null 2>&1 || : >tokens
sed -i -e "s|/etc/assay-tls/|$PWD/|; s|/etc/assay-ca/|$PWD/|; s|/etc/assay-token/|$PWD/|; s|/etc/assay-tokens/|$PWD/|" \
    -e "s|/etc/assay-clickhouse/|$PWD/|; s|/etc/assay-clickhouse-ca/|$PWD/|" out.yaml
examine
grep -q 'url: https://release-assay-server.profiles.svc:4040' agent.yaml

refuse() {
    if "$helm" template release "$chart" --kube-version 1.30.0 "${@:2}" >out.yaml 2>refused.log; then
        echo "Accepted: ${*:2}" >&2
        return 1
    fi
    grep -F -- "$1" refused.log
}
refuse 'must be 1 with mode embedded' --set server.replicas=2
refuse 'clickhouse.url is required' --set mode=clickhouse
refuse 'values don' --set mode=postgres
refuse 'values don' --set server.memoryLimit=1G
refuse 'values don' --set servers.replicas=1
refuse 'values don' --set 'clickhouse.url=http://x'
refuse 'incompatible with Kubernetes' --kube-version 1.20.0
