# SPDX-License-Identifier: Apache-2.0
# Bodies that are cut, flipped and mixed up, at every address that takes one, from several senders at
# once: the server answers each, and its other data stays what it was.
. "$ROOT/tests/server/common.bash"

start_server hostile --data store -c keep.yaml
push "$FIXTURES/man/base.pb.gz" 'service=good' >/dev/null

cat >hostile.py <<'PYTHON'
import base64, gzip, http.client, json, os, random, sys, threading
host, port = sys.argv[1].removeprefix("http://").split(":")
rounds, fixtures = int(sys.argv[2]), os.environ["FIXTURES"]
def load(name): return open(os.path.join(fixtures, name), "rb").read()
def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])
def field(number, content): return varint(number << 3 | 2) + varint(len(content)) + content
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
failures = []
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
        try:
            connection.request("POST", path, mutate(chance, body), headers)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status >= 500 and answer.status != 501:
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
python3 hostile.py "$url" "${HOSTILE_ROUNDS:-130}"
get "/api/v1/top?query=cpu%7Bservice%3D%22good%22%7D&$always" >top.json
json top.json 'd["total"] == 2130000000'
get "/api/v1/senders" >senders.json
json senders.json 'd[0]["refused"]["malformed"] > 10'
stop_server
