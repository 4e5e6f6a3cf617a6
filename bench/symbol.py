#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What symbol.sh measures and prints: making an index and asking it, beside other tools."""

import argparse
import os
import random
import shutil
import subprocess
import sys

PACKAGES = ("ceph-mon", "ceph-mon-dbg")  # C++, 290 MB of debug information, in Debian's main
WARM_TIMES = 20     # how much faster a look-up shall be
SIZE_SHARE = 0.15   # of the debug sections, at most


def skip(why):
    print(why)
    sys.exit(77)


def fetch(folder):
    """A large binary and its debug file out of Debian's packages."""
    root = os.path.join(folder, "root")
    if not os.path.isdir(root):
        os.makedirs(folder, exist_ok=True)
        if not shutil.which("apt-get") or subprocess.run(
                ["apt-get", "download", *PACKAGES], cwd=folder, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, check=False).returncode:
            skip(f"The packages {' and '.join(PACKAGES)} can't be had: give --binary and --debug.")
        for name in sorted(os.listdir(folder)):
            if name.endswith(".deb"):
                subprocess.run(["dpkg-deb", "-x", name, "root"], cwd=folder, check=True)
    binary = os.path.join(root, "usr/bin/ceph-mon")
    notes = subprocess.run(["readelf", "-n", binary], capture_output=True, text=True,
                           check=False).stdout
    build_id = notes.partition("Build ID: ")[2].split()[0]
    return binary, os.path.join(root, "usr/lib/debug/.build-id", build_id[:2],
                                build_id[2:] + ".debug")


def addresses_of(path, count):
    """Random ones all over the functions, the same in each run."""
    listing = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True,
                             check=False).stdout
    places = set()
    for line in listing.splitlines():
        fields = line.split(None, 7)
        if len(fields) > 7 and fields[3] == "FUNC" and fields[6] not in ("UND", "ABS") and \
                int(fields[2], 0):
            places.add((int(fields[1], 16), int(fields[2], 0)))
    places = sorted(places)
    random.seed(1)
    chosen = random.choices(places, weights=[size for _, size in places], k=count)
    return [start + random.randrange(size) for start, size in chosen]


class Bench:
    def __init__(self, arguments):
        self.build = arguments.build
        self.folder = os.path.join(self.build, "bench", "symbol")
        self.missed = False
        os.makedirs(self.folder, exist_ok=True)
        self.binary, debug = (arguments.binary, arguments.debug) if arguments.binary else \
            fetch(self.folder)
        self.debug = self.path("unpacked.debug")
        if not os.path.exists(self.debug) or \
                os.path.getmtime(self.debug) < os.path.getmtime(debug):
            subprocess.run(["objcopy", "--decompress-debug-sections", debug, self.debug],
                           check=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def measure(self, command, source=None):
        """(CPU seconds, peak MiB) of a command."""
        result = self.path("result")
        with open(source or os.devnull, encoding="ascii") as stdin:
            subprocess.run([os.path.join(self.build, "bench/bench-measure"), result, *command],
                           stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           check=True)
        with open(result, encoding="ascii") as file:
            _, user, system, peak = map(float, file.read().split())
        return user + system, peak / 1024

    def bar(self, held, text):
        self.missed = self.missed or not held
        print(("held    " if held else "MISSED  ") + text, flush=True)

    def make(self):
        own = min(self.measure([os.path.join(self.build, "assay"), "debuginfo", "index",
                                self.binary, "--debug", self.debug, "-o",
                                self.path("symbols")]) for _ in range(3))
        size = os.path.getsize(self.path("symbols"))
        sections = sum(int(fields[5], 16) for fields in (
            line.replace("[ ", "[").split() for line in subprocess.run(
                ["readelf", "-SW", self.debug], capture_output=True, text=True,
                check=False).stdout.splitlines()) if len(fields) > 6 and
            fields[1].startswith(".debug_"))
        peer = (float("inf"), 0)
        if shutil.which("llvm-gsymutil-14"):
            peer = min(self.measure(["llvm-gsymutil-14", f"--convert={self.debug}",
                                     "--num-threads=1", f"--out-file={self.path('gsym')}"])
                       for _ in range(2))
        print(f"binary: {sections / 1e6:.0f} MB of debug sections")
        self.bar(own[0] <= peer[0], f"made in {own[0]:.2f} s of CPU time on one thread; "
                 f"llvm-gsymutil with one thread takes {peer[0]:.2f} s")
        self.bar(size <= SIZE_SHARE * sections, f"{size / 1e6:.1f} MB, "
                 f"{100 * size / sections:.1f}% of the debug sections (at most 15%)")
        # What is mapped of the file counts as resident; beside that, the index twice and a unit.
        limit = (sections + 4 * size) / 2**20 + 64
        self.bar(own[1] <= limit, f"peak memory {own[1]:.0f} MiB, of which the mapped file is up to "
                 f"{sections / 2**20:.0f} MiB; llvm-gsymutil takes {peer[1]:.0f} MiB")

    def warm(self, command, addresses):
        """CPU seconds for the addresses when all was asked once: twice the list less once."""
        text = "".join(f"0x{address:x}\n" for address in addresses)
        times = []
        for rounds in (1, 2):
            with open(self.path("asked"), "w", encoding="ascii") as file:
                file.write(text * rounds)
            times.append(self.measure(command, self.path("asked"))[0])
        return times[1] - times[0]

    def ask(self, count, peer_count):
        addresses = addresses_of(self.debug, count)
        with open(self.path("addresses"), "w", encoding="ascii") as file:
            file.write("".join(f"{address:x}\n" for address in addresses))
        said = subprocess.run([os.path.join(self.build, "bench/bench-symbol-lookup"),
                               self.path("symbols"), self.path("addresses"), "3"],
                              capture_output=True, text=True, check=True).stdout.split()
        own = float(said[0])
        print(f"look-up: {own:.0f} ns for {int(said[1]) / count:.1f} frames, {count} addresses")
        some = addresses[:peer_count]
        printed = self.warm([os.path.join(self.build, "assay"), "debuginfo", "look-up",
                             self.path("symbols")], some) * 1e9 / peer_count
        print(f"look-up and printing by assay debuginfo: {printed:.0f} ns")
        peers = {"llvm-symbolizer": ["llvm-symbolizer", "-a", "--no-demangle",
                                     "--output-style=GNU", f"--obj={self.debug}"],
                 "eu-addr2line": ["eu-addr2line", "-afi", "-e", self.debug]}
        for name, command in peers.items():
            if not shutil.which(command[0]):
                continue
            # elfutils takes milliseconds for each.
            part = some if name == "llvm-symbolizer" else some[:max(200, len(some) // 1000)]
            theirs = self.warm(command, part) * 1e9 / len(part)
            self.bar(theirs >= WARM_TIMES * own,
                     f"{name} takes {theirs:.0f} ns, {theirs / own:.0f} times as long "
                     f"(at least {WARM_TIMES})")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--binary")
    parser.add_argument("--debug")
    arguments = parser.parse_args()
    if bool(arguments.binary) != bool(arguments.debug):
        parser.error("--binary and --debug go together")
    bench = Bench(arguments)
    bench.make()
    bench.ask(1000000, 20000 if arguments.quick else 1000000)
    sys.exit(1 if bench.missed else 0)


main()
