# SPDX-License-Identifier: Apache-2.0
# Names of pods from the kubelet's authenticated port, from the API server when that refuses, and of
# containers from a runtime's files.
. "$ROOT/tests/agent/common.bash"
type openssl python3 >/dev/null 2>&1 || { echo "openssl or python3 is missing."; exit 77; }

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout key.pem \
    -out cert.pem -subj /CN=node -addext subjectAltName=IP:127.0.0.1 2>/dev/null
id=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
uid=11112222-3333-4444-5555-$(head -c 6 /dev/urandom | od -An -tx1 | tr -d ' \n')
cat >pods.py <<'P'
"""pods.py UID ID: serves the list of pods as both servers have it; writes its address to `address`
and each request to `requests`."""
import http.server, json, os, ssl, sys

uid, container = sys.argv[1:]
template = "7d4b9c6f5d"
pod = {
    "metadata": {
        "name": "web-7d4b9c6f5d-x2x7q", "namespace": "shop", "uid": uid,
        "labels": {"app.kubernetes.io/name": "web", "app.kubernetes.io/version": "1.4.2",
                   "team": "checkout", "pod-template-hash": template},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet",
                             "name": "web-" + template, "uid": "x", "controller": True}],
    },
    "spec": {"nodeName": "worker-1", "containers": [{"name": "server"}]},
    "status": {"containerStatuses": [{"name": "server", "containerID": "containerd://" + container}]},
}

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print(self.path, self.headers.get("Authorization"), file=log, flush=True)
        token = self.headers.get("Authorization") == "Bearer " + open("token").read().strip()
        api = self.path == "/api/v1/pods?fieldSelector=spec.nodeName%3Dworker-1"
        kubelet = self.path == "/pods" and not os.path.exists("no-kubelet")
        body = json.dumps({"kind": "PodList", "apiVersion": "v1", "items": [pod]}).encode()
        self.send_response(200 if token and (api or kubelet) else 403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *unused):
        pass

log = open("requests", "a")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
with open("address.new", "w") as file:
    file.write("https://127.0.0.1:%d" % server.server_address[1])
os.rename("address.new", "address")
server.serve_forever()
P
echo first-token >token
python3 pods.py "$uid" "$id" &
agents+=($!)
tries=0
until [ -s address ]; do
    [ $((tries += 1)) -lt 600 ]
    sleep 0.05
done

group=
for root in /sys/fs/cgroup/unified /sys/fs/cgroup/systemd /sys/fs/cgroup; do
    if [ -w "$root/cgroup.procs" ] && mkdir "$root/kubepods-pod${uid//-/_}.slice" 2>/dev/null; then
        group=$root/kubepods-pod${uid//-/_}.slice
        mkdir "$group/cri-containerd-$id.scope"
        break
    fi
done
[ -n "$group" ] || { echo "No cgroup can be made here."; exit 77; }
finish() {
    for p in "${agents[@]}" "${servers[@]}"; do kill -9 "$p" 2>/dev/null || true; done
    for p in "${agents[@]}"; do wait "$p" 2>/dev/null || true; done
    rmdir "$group"/*/ "$group" 2>/dev/null || true
}
trap finish EXIT

start_server server --data store
run_in_pod() { # NAME: an agent with NAME.yaml, and a program in the pod under its eyes
    start_agent "$1" --config "$1.yaml"
    need_host "$1"
    local tries=0
    until status_of "$1" && grep -q '"pod_containers": *1' "$1.status.json"; do
        [ $((tries += 1)) -lt 600 ]
        sleep 0.1
    done
    bash -c 'echo $$ >"$1/cgroup.procs" && exec ./busy 1' bash "$group/cri-containerd-$id.scope"
    status_of "$1"
    stop_agent
}
settings() { # NAME CA
    cat generous.yaml - >"$1.yaml" <<YAML
kubernetes:
  kubelet: $(cat address)
  api_server: $(cat address)/
  node: worker-1
  token_file: $PWD/token
  ca_file: $2
relabel_configs:
  - {source_labels: [__meta_pod_label_team], target_label: owner}
YAML
}
settings kubelet "$PWD/cert.pem"
run_in_pod kubelet
labels='pod="web-7d4b9c6f5d-x2x7q",namespace="shop",container="server",version="1.4.2"'
labels+=',node="worker-1",workload="web",workload_kind="Deployment",owner="checkout"'
about "$(seconds "{service_name=\"web\",$labels}")" 1 kubelet
grep -q '^/pods Bearer first-token' requests

# The kubelet refuses: the API server is asked, with the token that is there by now.
: >no-kubelet
echo second-token >token
settings server "$PWD/cert.pem"
run_in_pod server
about "$(seconds "{service_name=\"web\",workload=\"web\"}")" 2 server
grep -q '^/api/v1/pods.* Bearer second-token' requests

# A certificate of somebody else gets no token.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout other.key \
    -out other.pem -subj /CN=other 2>/dev/null
: >requests
settings distrusted "$PWD/other.pem"
start_agent distrusted --config distrusted.yaml
tries=0
until grep -q 'Failed to get pod names' distrusted.log; do
    [ $((tries += 1)) -lt 600 ]
    sleep 0.1
done
[ ! -s requests ]
stop_agent
