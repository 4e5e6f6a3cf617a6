# SPDX-License-Identifier: Apache-2.0
# Every route gets requests that are cut, flipped and mixed up: bodies of each format, parameters,
# headers and whole requests, from several senders at once. The server answers each, and its other
# data stays what it was. $HOSTILE_ROUNDS is how many of each sender.
. "$ROOT/tests/server/common.bash"

start_server hostile --data store -c keep.yaml
push "$FIXTURES/man/base.pb.gz" 'service=good' >/dev/null

cat >hostile.py <<'PYTHON'
import base64, gzip, http.client, json, os, random, re, socket, sys, threading
from urllib.parse import quote
from protobuf import field
host, port = sys.argv[1].removeprefix("http://").split(":")
rounds, fixtures = int(sys.argv[2]), os.environ["FIXTURES"]
def load(name): return open(os.path.join(fixtures, name), "rb").read()
pprof = gzip.decompress(load("man/heap.pb.gz"))
pair = field(1, field(1, b"service_name") + field(2, b"bad"))
form = (b'--B\r\nContent-Disposition: form-data; name="profile"\r\n\r\n' + pprof + b"\r\n--B--\r\n")
connect = {"Content-Type": "application/json"}
seeds = [
    ("/api/v1/push?service=bad", {}, pprof),
    ("/api/v1/push?service=bad", {}, load("man/heap.pb.gz")),
    ("/api/v1/push?service=bad", {}, load("jfr/async.jfr")),
    ("/api/v1/push?service=bad&from=now", {}, load("man/stacks.folded")),
    ("/ingest?name=bad", {"Content-Type": "multipart/form-data; boundary=B"}, form),
    ("/ingest?name=bad&format=lines", {}, load("man/stacks.folded")),
    ("/v1development/profiles", {"Content-Type": "application/x-protobuf"}, load("otlp/1.10.pb")),
    ("/v1development/profiles", connect, load("otlp/1.10.json")),
    ("/push.v1.PusherService/Push", {"Content-Type": "application/proto"},
     field(1, pair + field(2, field(1, pprof)))),
    ("/push.v1.PusherService/Push", connect, json.dumps({"series": [{"labels": [
        {"name": "service_name", "value": "bad"}], "samples": [
        {"rawProfile": base64.b64encode(pprof).decode()}]}]}).encode()),
    ("/api/profiles/writeraw", {"Content-Type": "application/proto"},
     field(2, field(1, pair) + field(2, field(1, pprof)))),
    ("/querier.v1.QuerierService/SelectMergeStacktraces", connect,
     b'{"profileTypeID":"a:b:c:d:e","labelSelector":"{a=\\"b\\"}","start":"1","end":2}'),
    ("/querier.v1.QuerierService/Diff", {"Content-Type": "application/proto"},
     field(1, field(1, b"a:b:c:d:e") + b"\x18\x01\x20\x02") * 2 + field(2, field(1, b"a:b:c:d:e"))),
]
for name in ["speedscope/sampled.speedscope.json", "cpuprofile/node20.cpuprofile", "perf-script/stacks.txt"]:
    seeds.append(("/api/v1/push?service=bad", {}, load(name)))
# Every other route that takes a body, and every one that doesn't, as the program's table has them.
table = open(os.path.join(os.environ["ROOT"], "src/server/routes.c")).read()
routes = re.findall(r'\{"(?:GET|POST|PUT|DELETE)", "([^"]+)"', table)
gets = re.findall(r'\{"GET", "([^"]+)"', table)
if len(routes) < 30 or len(gets) < 15: sys.exit("The table of routes isn't understood.")
for route in routes:
    if route not in gets and not any(s[0].startswith(route.split("*")[0]) for s in seeds):
        seeds.append((route.replace("*", "x"), connect, b'{"start":"1","end":2}'))
for method in re.findall(r'"(Select\w+|Label\w+|Series|ProfileTypes|Diff|Get\w+|Analyze\w+)"',
                         open(os.path.join(os.environ["ROOT"], "src/server/pyroscope/querier.c")).read()):
    seeds.append(("/querier.v1.QuerierService/" + method, connect, json.dumps({
        "profileTypeID": "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "labelSelector": '{a=~".*"}',
        "start": "0", "end": "1894716000000", "name": "service_name", "step": 15,
        "groupBy": ["a"], "matchers": ['{a="b"}'], "maxNodes": "7", "left": {}, "right": {}}).encode()))
words = {
    "query": ["cpu", 'cpu{service="good"}', 'cpu{service=~"(a|b)*c+"}', "a:b:c:d:e", "{", 'cpu{a=~"("}'],
    "from": ["now-1h", "0", "1980-01-01", "-1", "now+1d", "9" * 30], "to": ["now", "now%2B1d", "1e99"],
    "format": ["json", "pprof", "folded", "svg", "html", "otlp", "speedscope", "dot", "x"],
    "step": ["1s", "0", "15", "-1", "3650d"], "limit": ["0", "10", "99999999999999999999"],
    "max_nodes": ["2", "8192", "0"], "function": ["main", "\xff", ""], "group_by": ["service_name", "a,b"],
    "rightQuery": ["cpu"], "base_query": ["cpu"], "name": ["app{a=b}", "x"], "until": ["now", "x"],
    "label": ["service_name"], "normalize": ["auto", "x"], "leftFrom": ["0"], "rightFrom": ["now"],
    "service": ["good", "x" * 300], "count": ["flat", "cum"], "token": ["x"]}
failures = []
def question(chance):
    """A GET of any route with parameters that may fit, or not at all."""
    names = chance.sample(sorted(words), chance.randrange(6)) + ["query"]
    pairs = []
    for name in names:
        value = chance.choice(words[name])
        if chance.random() < 0.3:
            raw = mutate(chance, value.encode("latin-1") or b"x")
            value = quote(raw)
        elif "%" not in value:
            value = quote(value)
        pairs.append(name + "=" + value)
    return chance.choice(gets).replace("*", chance.choice(["x", "service_name", "%00", "a%2fb", "..%2f..%2fetc"])) \
        + "?" + "&".join(pairs)
def raw_request(chance):
    """Bytes that were once a request; anything may come back, but the server stays."""
    path, headers, body = chance.choice(seeds)
    lines = "".join(f"{k}: {v}\r\n" for k, v in headers.items())
    whole = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode()
    data = mutate(chance, whole)
    if chance.random() < 0.5: data += body[:chance.randrange(len(body) + 1)]
    with socket.create_connection((host, int(port)), 120) as s:
        try:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            while s.recv(65536): pass
        except TimeoutError:
            raise
        except OSError:
            pass # it has closed already
def mutate(random, body):
    body = bytearray(body)
    for _ in range(random.choice([0, 1, 1, 2, 8])):
        body[random.randrange(len(body))] = random.randrange(256)
    kind = random.randrange(4)
    if kind == 0: del body[random.randrange(len(body)):]
    if kind == 1:
        at = random.randrange(len(body))
        body[at:at] = body[:random.randrange(200)]
    return bytes(body)
def send(seed):
    chance = random.Random(seed)
    connection = http.client.HTTPConnection(host, int(port), timeout=120)
    for i in range(rounds):
        path, headers, body = seeds[(seed + i) % len(seeds)]
        kind = chance.randrange(4)
        try:
            if kind == 0:
                raw_request(chance)
                continue
            if kind == 1:
                path = question(chance)
                connection.request("GET", path)
            else:
                connection.request("POST", path, mutate(chance, body), headers)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status >= 500 and answer.status not in (501, 503):
                failures.append((path, answer.status, text[:200]))
        except (http.client.HTTPException, OSError) as error:
            failures.append((path, repr(error)))
            return
threads = [threading.Thread(target=send, args=(i,)) for i in range(4)]
for t in threads: t.start()
for t in threads: t.join()
for failure in failures[:5]: print(failure)
sys.exit(bool(failures))
PYTHON
python3 hostile.py "$url" "${HOSTILE_ROUNDS:-60}"
get "/api/v1/top?query=cpu%7Bservice%3D%22good%22%7D&$always" >top.json
json top.json 'd["total"] == 2130000000'
get "/api/v1/senders" >senders.json
json senders.json 'd[0]["refused"]["malformed"] > 10'
stop_server
