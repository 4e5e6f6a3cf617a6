#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Load that knows exactly what a server has acknowledged, and what it must have after any accident.

load.py SCENARIO [--rounds N] [--data DIR] ...   ($ASSAY is the program)

A batch is one push of three series whose stacks carry the batch's number, under a batch id. The last
series is of yesterday, so that a batch is in two files of the store. A batch that was answered 200
must be there once, with all of its values; one that wasn't must be there whole or not at all."""

import argparse, http.client, json, os, random, re, signal, subprocess, sys, threading, time
import urllib.parse

import h2
from protobuf import field, varint

PUSH = "/push.v1.PusherService/Push"
STREAMS = 4  # at once on each connection of gRPC
SERVICES = ["load0", "load1", "load2"]
LEAVES = 4
DAY_S = 86400


def pprof(stacks, time_ns):
    """A CPU profile of {(root, ..., leaf): value}."""
    strings = {"": 0}
    def text(s): return strings.setdefault(s, len(strings))
    kind = field(1, text("cpu")) + field(2, text("nanoseconds"))
    out, ids = field(1, kind), {}
    for stack, value in stacks.items():
        locations = [ids.setdefault(name, len(ids) + 1) for name in reversed(stack)]
        out += field(2, field(1, b"".join(map(varint, locations))) + field(2, varint(value)))
    for name, i in ids.items():
        out += field(4, field(1, i) + field(4, field(1, i)))
        out += field(5, field(1, i) + field(2, text(name)))
    for s in strings:
        out += field(6, s)
    return out + field(9, time_ns) + field(10, 10**10) + field(11, kind) + field(12, 10**7)


class Batch:
    def __init__(self, number, now_s):
        self.number, self.id = number, f"batch-{number}"
        self.value = 1 + number % 7
        self.function = f"b{number}x"
        today = int(now_s)
        midnight = today - today % DAY_S
        stacks = {("main", self.function, f"leaf{i}"): self.value for i in range(LEAVES)}
        self.body = b""
        for i, service in enumerate(SERVICES):
            at = midnight - 1 if i == len(SERVICES) - 1 else today
            labels = [field(1, field(1, k) + field(2, v)) for k, v in
                      {"__name__": "process_cpu", "service_name": service}.items()]
            raw = pprof(stacks, at * 10**9 + number)
            self.body += field(1, b"".join(labels) + field(2, field(1, raw)))


HALF = 300  # bytes of a call that are sent first


def message(batch):
    return b"\0" + len(batch.body).to_bytes(4, "big") + batch.body


def begin_call(connection, batch):
    stream = connection.open("POST", PUSH, [("content-type", "application/grpc"), ("te", "trailers"),
                                            ("x-assay-batch-id", batch.id)])
    connection.data(stream, message(batch)[:HALF], ended=False)
    return stream


class Server:
    def __init__(self, arguments):
        self.arguments, self.process, self.runs = arguments, None, 0
        store = getattr(arguments, "store", None)
        self.store = ["--store", store] if store else []

    def start(self, wait=True):
        self.runs += 1
        self.log = open(f"server-{self.runs}.log", "w+")
        self.process = subprocess.Popen(
            [os.environ["ASSAY"], "server", "--listen", "127.0.0.1:0", "--data", self.arguments.data,
             "-c", "load.yaml", *self.store],
            stderr=self.log, stdout=self.log)
        if wait:
            self.await_address()

    def text(self):
        with open(self.log.name) as log:
            return log.read()

    def await_address(self):
        for _ in range(2400):
            found = re.search(r"serving on http://127.0.0.1:(\d+)", self.text())
            if found:
                self.port = int(found[1])
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        sys.exit("The server does not start:\n" + self.text())

    def end(self, number):
        self.process.send_signal(number)
        status = self.process.wait(timeout=120)
        if "ERROR: AddressSanitizer" in self.text() or "runtime error" in self.text():
            sys.exit(self.text())
        return status

    def ask(self, path, timeout=120):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if answer.status != 200:
            raise RuntimeError(f"{path} was answered {answer.status}: {body[:300]}")
        return body


class Load:
    """Senders in threads; `acknowledged` and `unsure` are batches by number."""

    def __init__(self, server, threads=6, clock=time.time):
        self.server, self.threads, self.clock = server, threads, clock
        self.lock = threading.Lock()
        self.acknowledged, self.unsure, self.retry = {}, {}, []
        self.refusals, self.repeats, self.next = [], 0, 1
        self.random = random.Random(os.environ.get("LOAD_SEED"))
        self.running = []

    def begin(self):
        self.stopping = False
        # What an accident left unsure is tried again under its id, or given up.
        for number in list(self.unsure):
            if self.random.random() < 0.6:
                self.retry.append(self.unsure.pop(number))
        send = self.send_streams if self.server.arguments.grpc else self.send
        self.running = [threading.Thread(target=send) for _ in range(self.threads)]
        for thread in self.running:
            thread.start()

    def end(self):
        self.stopping = True
        for thread in self.running:
            thread.join()
        for batch in self.retry:
            self.unsure[batch.number] = batch
        self.retry = []

    def take(self):
        with self.lock:
            if self.retry:
                return self.retry.pop()
            self.next += 1
            return Batch(self.next - 1, self.clock())

    def push(self, connection, batch):
        connection.request("POST", PUSH, batch.body,
                           {"Content-Type": "application/proto", "X-Assay-Batch-Id": batch.id})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.will_close

    def send(self):
        """Until it is told to stop, or nobody answers any more."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=120)
        while not self.stopping:
            batch = self.take()
            try:
                status, body, closed = self.push(connection, batch)
            except (OSError, http.client.HTTPException):
                with self.lock:
                    self.unsure[batch.number] = batch
                break
            self.answered(batch, status == 200, (status, body.decode()))
            if closed:
                connection.close()
        connection.close()

    def answered(self, batch, accepted, refusal):
        with self.lock:
            if accepted:
                self.acknowledged[batch.number] = batch
            else:
                # Whoever is refused knows that nothing of it was stored; a retry must do.
                self.refusals.append(refusal)
                self.retry.append(batch)
        if not accepted:
            time.sleep(0.05)

    def send_streams(self):
        """The same by gRPC, several calls at once, parts of all of them before the rest."""
        batches = {}
        try:
            connection = h2.Connection(f"127.0.0.1:{self.server.port}")
            while not self.stopping and connection.goaway is None:
                for batch in [self.take() for _ in range(STREAMS)]:
                    stream = begin_call(connection, batch)
                    batches[stream] = batch
                for stream, batch in batches.items():
                    connection.data(stream, message(batch)[HALF:])
                for stream in list(batches):
                    answer = connection.wait(stream)
                    if answer.reset is not None:  # nothing was said about it
                        continue
                    self.answered(batches.pop(stream), answer.grpc == 0,
                                  (answer.grpc, answer.header("grpc-message") or ""))
            connection.close()
        except (OSError, h2.Closed):
            pass
        with self.lock:
            self.unsure.update({batch.number: batch for batch in batches.values()})

    def found(self, service):
        query = urllib.parse.quote('process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="%s"}'
                                   % service)
        try:
            text = self.server.ask(f"/api/v1/profile?query={query}&from=1980-01-01&to=now%2B9d"
                                   "&format=folded").decode()
        except RuntimeError as error:
            if "answered 404" in str(error):
                return {}
            raise
        values = {}
        for line in text.splitlines():
            stack, value = line.rsplit(" ", 1)
            frames = stack.split(";")
            if len(frames) != 3:
                sys.exit(f"{service} has a stack that nobody sent: {line}")
            values[frames[1], frames[2]] = int(value)
        return values

    def check(self, when, parts=False):
        """With `parts`, a batch that was refused may be there in part: of several files, one took it
        and can't be written any more. It is removed when it can, at the latest by the next start."""
        stored = {service: self.found(service) for service in SERVICES}
        problems, kept = [], 0
        everything = {**self.acknowledged, **self.unsure, **{b.number: b for b in self.retry}}
        for batch in everything.values():
            got = [stored[s].pop((batch.function, f"leaf{i}"), 0)
                   for s in SERVICES for i in range(LEAVES)]
            whole = all(v == batch.value for v in got)
            kept += whole and batch.number not in self.acknowledged
            if whole or (batch.number not in self.acknowledged and (parts or not any(got))):
                continue
            state = "acknowledged" if batch.number in self.acknowledged else "unsure"
            problems.append(f"{batch.id} ({state}) has {got} instead of {batch.value} each")
        for service, rest in stored.items():
            problems += [f"{service} has {name} that nobody sent" for name in list(rest)[:5]]
        if problems:
            sys.exit(f"{when}, of {len(everything)} batches:\n" + "\n".join(problems[:20]))
        print(f"{when}: {len(self.acknowledged)} acknowledged batches are there once, "
              f"{kept} of {len(everything) - len(self.acknowledged)} others are there whole.",
              flush=True)
        return kept


def check_store(data):
    done = subprocess.run([os.environ["ASSAY"], "store", "check", data], capture_output=True,
                          text=True)
    if done.returncode:
        sys.exit(f"store check says:\n{done.stdout}{done.stderr}")


def settle(server, load):
    """Everything left is sent again, and then all is there; also after another start."""
    load.begin()
    while load.retry or len(load.acknowledged) < 50:
        time.sleep(0.05)
    load.end()
    load.check("At the end")
    if server.end(signal.SIGTERM):
        sys.exit("The server ended with an error:\n" + server.text())
    check_store(server.arguments.store or server.arguments.data)
    server.start()
    load.check("After another start")
    server.end(signal.SIGTERM)


def kill(arguments, server, load):
    """kill -9 at random moments, of starting too."""
    for i in range(arguments.rounds):
        if load.random.random() < 0.15:
            server.start(wait=False)
            time.sleep(load.random.uniform(0, 0.3))
            server.end(signal.SIGKILL)
        server.start()
        if i % arguments.check_every == 0:
            load.check(f"After {i} kills")
        load.begin()
        time.sleep(load.random.uniform(0.02, arguments.longest))
        server.end(signal.SIGKILL)
        load.end()
    server.start()
    load.check(f"After {arguments.rounds} kills")
    settle(server, load)


def term_streams(server, load, batch):
    """The same with a call: the server says goodbye, and answers what has begun."""
    begun = h2.Connection(f"127.0.0.1:{server.port}")
    stream = begin_call(begun, batch)
    begun.request("GET", "/ready")
    server.process.send_signal(signal.SIGTERM)
    begun.until(lambda: begun.goaway is not None, "the server's goodbye")
    begun.data(stream, message(batch)[HALF:])
    answer = begun.wait(stream)
    if (begun.goaway, answer.grpc) != (h2.NO_ERROR, 0):
        sys.exit(f"A call that had begun was answered {answer.grpc}: {answer.header('grpc-message')}")
    begun.close()
    load.acknowledged[batch.number] = batch
    if server.process.wait(timeout=60):
        sys.exit("The server ended with an error:\n" + server.text())
    load.end()


def term(arguments, server, load):
    """Ending it gracefully under load: what it had begun to take gets its answer."""
    for i in range(arguments.rounds):
        server.start()
        load.begin()
        time.sleep(load.random.uniform(0.1, 0.6))
        batch = load.take()
        if arguments.grpc:
            term_streams(server, load, batch)
            continue
        half = len(batch.body) // 2
        begun = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        begun.putrequest("POST", "/push.v1.PusherService/Push")
        for name, value in {"Content-Type": "application/proto", "X-Assay-Batch-Id": batch.id,
                            "Content-Length": str(len(batch.body))}.items():
            begun.putheader(name, value)
        begun.endheaders(batch.body[:half])
        # Answered later than what was sent before: the head is there.
        server.ask("/ready")
        time.sleep(0.2)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        begun.send(batch.body[half:])
        answer = begun.getresponse()
        if answer.status != 200:
            sys.exit(f"A push that had begun was answered {answer.status}: {answer.read()}")
        answer.read()
        begun.close()
        load.acknowledged[batch.number] = batch
        if server.process.wait(timeout=60):
            sys.exit("The server ended with an error:\n" + server.text())
        load.end()
    for status, body in load.refusals:
        if status != (14 if arguments.grpc else 503) or "shutting down" not in body:
            sys.exit(f"A push was answered {status}: {body}")
    server.start()
    if load.check("After ending it") and arguments.grpc:
        sys.exit("Calls were stored, and their answers lost.")
    settle(server, load)


def hup(arguments, server, load):
    """Reading the configuration again disturbs nobody."""
    server.start()
    load.begin()
    for _ in range(arguments.rounds):
        server.process.send_signal(signal.SIGHUP)
        time.sleep(load.random.uniform(0, 0.1))
    load.end()
    if load.refusals or load.unsure:
        sys.exit(f"{len(load.unsure)} pushes failed, {load.refusals[:3]} were refused")
    settle(server, load)


def pause(arguments, server, load):
    """Load for a while, told by lines on stdin what to do next. Says when each is done."""
    server.start()
    print(f"port {server.port} pid {server.process.pid}", flush=True)
    for line in sys.stdin:
        word = line.split()
        if word[0] == "load":
            load.begin()
        elif word[0] == "acknowledge": # wait until so many more are
            wanted = len(load.acknowledged) + int(word[1])
            while len(load.acknowledged) < wanted:
                if not any(t.is_alive() for t in load.running):
                    sys.exit("The server answers no more:\n" + server.text())
                time.sleep(0.02)
        elif word[0] == "refuse": # until so many more were refused, with one of these statuses
            wanted = len(load.refusals) + int(word[1])
            while len(load.refusals) < wanted:
                if not any(t.is_alive() for t in load.running):
                    sys.exit("The server answers no more:\n" + server.text())
                time.sleep(0.02)
            for status, body in load.refusals:
                if str(status) not in word[2:]:
                    sys.exit(f"A push was answered {status}: {body}")
            print(f"# {load.refusals[-1]}", flush=True)
        elif word[0] == "end":
            load.end()
        elif word[0] == "health":
            server.ask("/api/v1/health")
            server.ask("/metrics")
        elif word[0] == "check":
            load.check("Asked on the way", "parts" in word)
        elif word[0] == "kill":
            server.end(signal.SIGKILL)
        elif word[0] == "start":
            server.start()
        elif word[0] == "settle":
            settle(server, load)
        print("done " + line.strip(), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scenario", choices=["kill", "term", "hup", "pause"])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--check-every", type=int, default=1)
    parser.add_argument("--longest", type=float, default=0.8)
    parser.add_argument("--threads", type=int, default=6)
    parser.add_argument("--data", default="load-data")
    parser.add_argument("--store", help="URL of the server's store, if not its data directory")
    parser.add_argument("--grpc", action="store_true", help="push by gRPC instead of HTTP/1.1")
    parser.add_argument("--clock-file", help="seconds to add to the clock, as faketime has it")
    arguments = parser.parse_args()
    with open("load.yaml", "w") as config:
        config.write("retention: {raw: 0, ten_minutes: 0, hour: 0, day: 0}\n")
    def clock():
        with open(arguments.clock_file) as file:
            return time.time() + float(file.read() or 0)
    server = Server(arguments)
    load = Load(server, arguments.threads, clock if arguments.clock_file else time.time)
    try:
        globals()[arguments.scenario](arguments, server, load)
    finally:
        load.stopping = True
        if server.process and server.process.poll() is None:
            server.process.kill()
            server.process.wait()


if __name__ == "__main__":
    main()
