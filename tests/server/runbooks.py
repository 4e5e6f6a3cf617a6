# SPDX-License-Identifier: Apache-2.0
"""runbooks.py DIRECTORY ASSAY URL: sends what the runbooks are about, and runs their commands."""

import pathlib
import re
import shlex
import subprocess
import sys
import time
import urllib.request

import window_pprof

DIRECTORY, ASSAY, URL = sys.argv[1:]
MS = 10**6
ASKS = {"query", "findings", "explain", "baseline", "pin", "agents", "control", "gate"}


def push(query, kind, unit, start, samples):
    sys.argv = ["", "window.pb", kind, unit, str(start), "10"] + samples
    window_pprof.main()
    with open("window.pb", "rb") as file:
        urllib.request.urlopen(f"{URL}/api/v1/push?{query}", file.read()).close()


def fill():
    now = int(time.time()) // 10 * 10 - 20
    times = [now - 86400 + 60 * k for k in range(1, 50, 12)]
    times += [now - 240 * k for k in range(45, 0, -1)] + [now - 60 * k for k in range(9, 0, -1)]
    for start in times:
        version = "1.2" if start > now - 4000 else "1.1"
        for host in ("h1", "h2"):
            who = f"service=shop&version={version}&host={host}&pod=p-{host}"
            push(who, "cpu", "nanoseconds", start,
                 [f"main;serve;parse={2000 * MS}", f"main;cache.Put;runtime.mallocgc={1000 * MS}",
                  f"runtime.gcBgMarkWorker={500 * MS}"])
            push(who, "wall", "nanoseconds", start,
                 [f"main;serve={3000 * MS},state=running", f"main;take;lock={1000 * MS},state=lock",
                  f"main;serve={500 * MS},state=runnable"])
        for kind, unit in (("inuse_space", "bytes"), ("alloc_space", "bytes"), ("alloc_objects", "count"),
                           ("rss", "bytes")):
            push(who, kind, unit, start, ["main;cache.Put=104857600", "main;serve=1048576"])
        push(who + "&name=mutex", "delay", "nanoseconds", start, [f"main;take;Unlock={900 * MS}"])
        push(f"service=batch&host=h2", "cpu", "nanoseconds", start, [f"main;work={4000 * MS}"])


def commands():
    for path in sorted(pathlib.Path(DIRECTORY).glob("*.md")):
        found = 0
        for block in re.findall(r"^ *```\n(.*?)^ *```", path.read_text(), re.M | re.S):
            for line in block.splitlines():
                if line.strip().startswith("assay "):
                    found += 1
                    yield path.name, shlex.split(line.strip())[1:]
        assert found >= 3, f"{path.name} has {found} commands"


def is_asking(words):
    return words[0] in ASKS or (words[0] == "triage" and "--service" in words) \
        or words[:2] == ["store", "delete"]


def options_are_known(words):
    text = subprocess.run([ASSAY, words[0], "--help"], capture_output=True, text=True, check=True).stdout
    own = words[:words.index("--")] if "--" in words else words
    for word in own[1:]:
        if word.startswith("-"):
            name = word.split("=")[0]
            assert re.search(rf"^ *(-\w, )?(--[\w-]+)?{re.escape(name)}\b|, {re.escape(name)}\b", text, re.M), \
                f"assay {words[0]} doesn't have {name}"


def main():
    fill()
    asked = 0
    for name, words in commands():
        options_are_known(words)
        if not is_asking(words):
            continue
        if any("127.0.0.1:4040" in word for word in words):
            words = [word.replace("http://127.0.0.1:4040", URL) for word in words]
        else:
            words += ["--server" if words[0] in ("agents", "control", "triage") else "--url", URL]
        words = ["now-15m" if word == "14:32" else word for word in words]
        done = subprocess.run([ASSAY] + words, capture_output=True, text=True, errors="replace", check=False)
        fine = (0, 3, 4) if words[0] == "gate" else (0,)
        assert done.returncode in fine, f"{name}: {shlex.join(words)}: {done.stderr}"
        asked += 1
    assert asked > 40, asked
    print(f"{asked} commands work.")


main()
