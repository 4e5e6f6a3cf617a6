# SPDX-License-Identifier: Apache-2.0
# Targets that other services know: lists by HTTP, names in DNS, and pods of a Kubernetes API.
. "$ROOT/tests/server/common.bash"

python3 "$ROOT/tests/server/scrape_target.py" target.port 2>target.log &
servers+=($!)
cat >known.py <<'P'
"""known.py TARGET-PORT: serves lists of targets; its port is in known.port."""
import http.server, json, os, sys, urllib.parse

port = int(sys.argv[1])

def pod(name, annotations, ports, ip="127.0.0.1"):
    return {
        "metadata": {"name": name, "namespace": "shop", "uid": name, "labels": {"app.kubernetes.io/name": "web"},
                     "annotations": annotations,
                     "ownerReferences": [{"kind": "ReplicaSet", "name": "web-5f", "controller": True}]},
        "spec": {"nodeName": "n1", "containers": [{"name": "server", "ports": ports}]},
        "status": {"podIP": ip, "phase": "Running"},
    }

asked = {"profiles/scrape": "true"}
pages = [
    [pod("web-1", asked, [{"name": "pprof", "containerPort": port}, {"name": "web", "containerPort": 1}])],
    [pod("web-2", {}, [{"containerPort": port}]), pod("waiting", asked, [{"containerPort": port}], "")],
]

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        answer = None
        if url.path == "/targets" and os.path.exists("list.json"):
            answer = open("list.json").read()
        elif url.path == "/api/v1/namespaces/shop/pods" and self.headers["Authorization"] == "Bearer abc":
            page = 1 if query.get("continue") == ["next page=2"] else 0
            more = {"continue": "next page=2"} if page == 0 else {}
            answer = json.dumps({"kind": "PodList", "metadata": more, "items": pages[page]})
        body = (answer or "no").encode()
        self.send_response(200 if answer else 403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *unused):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open("known.new", "w") as file:
    file.write(str(server.server_address[1]))
os.rename("known.new", "known.port")
server.serve_forever()
P
tries=0
until [ -s target.port ]; do
    [ $((tries += 1)) -lt 600 ]
    sleep 0.05
done
port=$(cat target.port)
python3 known.py "$port" &
servers+=($!)
until [ -s known.port ]; do
    [ $((tries += 1)) -lt 600 ]
    sleep 0.05
done
known=http://127.0.0.1:$(cat known.port)
printf 'abc\n' >token
printf '[{"targets": ["127.0.0.1:%s"], "labels": {"zone": "west"}}]' "$port" >list.json

job() { # NAME KEYS
    printf -- '- {job_name: %s, scrape_interval: 1s, profiling_config: {path_prefix: /good, ' "$1"
    printf 'pprof_config: {process_cpu: {enabled: false}, goroutine: {enabled: false}, '
    printf 'mutex: {enabled: false}, block: {enabled: false}}}, %s}\n' "$2"
}
{
    cat keep.yaml
    printf 'scrape_configs:\n'
    job list "http_sd_configs: [{url: '$known/targets', refresh_interval: 1s}]"
    job names "dns_sd_configs: [{names: [localhost], type: A, port: $port}]"
    job pods "kubernetes_sd_configs: [{role: pod, api_server: '$known', namespaces: {names: [shop]},
        authorization: {credentials_file: token}}], relabel_configs: [
        {source_labels: [__meta_kubernetes_pod_annotation_profiles_scrape,
            __meta_kubernetes_pod_container_port_name], regex: 'true;pprof', action: keep},
        {source_labels: [__meta_kubernetes_pod_name], target_label: pod},
        {source_labels: [__meta_kubernetes_pod_controller_name], target_label: workload},
        {source_labels: [__meta_kubernetes_pod_label_app_kubernetes_io_name], target_label: service_name}]"
    job refused "kubernetes_sd_configs: [{role: pod, api_server: '$known'}]"
} >config.yaml
"$ASSAY" server --check-config --config config.yaml >/dev/null
start_server scrape --data store -c config.yaml

# holds EXPRESSION: of the targets t, until it does.
holds() {
    local tries=0
    while :; do
        get /api/v1/targets >targets.json
        python3 -c 'import json, sys
t = json.load(open("targets.json"))
sys.exit(0 if eval("(" + sys.argv[1] + ")") else 1)' "$1" 2>holds.log && return
        if [ $((tries += 1)) -gt 600 ]; then
            echo "$1 doesn't hold" >&2
            cat holds.log targets.json scrape.log >&2
            return 1
        fi
        sleep 0.1
    done
}
holds 'sorted(x["job"] for x in t) == ["list", "names", "pods"] and all(x["health"] == "up" for x in t)'
holds '[x["labels"].get("zone") for x in t if x["job"] == "list"] == ["west"]'
holds '[(x["labels"]["pod"], x["labels"]["workload"], x["labels"]["service_name"]) for x in t if x["job"] == "pods"] == [("web-1", "web-5f", "web")]'

# Another list; then none: what was known stays.
printf '[{"targets": ["127.0.0.1:%s"], "labels": {"zone": "east"}}]' "$port" >list.new
mv list.new list.json
holds '[x["labels"].get("zone") for x in t if x["job"] == "list"] == ["east"]'
rm list.json
tries=0
until grep 'of the job "list"; keeping the previous ones' scrape.log >/dev/null; do
    [ $((tries += 1)) -lt 600 ]
    sleep 0.1
done
holds '[x["labels"].get("zone") for x in t if x["job"] == "list"] == ["east"]'

# Mistakes are found before anything starts.
printf 'scrape_configs:
- {job_name: a, http_sd_configs: [{url: "ftp://x"}]}
- {job_name: b, dns_sd_configs: [{names: [x], type: A}]}
- {job_name: c, dns_sd_configs: [{names: []}]}
- {job_name: d, kubernetes_sd_configs: [{role: pods}]}
- {job_name: e, kubernetes_sd_configs: [{role: pod, api_server: x}]}\n' >wrong.yaml
if "$ASSAY" server --check-config --config wrong.yaml 2>wrong.txt; then exit 1; fi
[ "$(grep -c '^wrong.yaml:' wrong.txt)" -eq 5 ]
