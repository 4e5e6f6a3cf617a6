#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What wall-clock profiling costs per context switch, beside bcc's offcputime and `perf sched
record` in the same run; and what the agent takes of all CPUs. For each rate of switches, and each tool in turn: the CPU time that the
load took more per switch than without a tool, plus the tool's own, as ns per switch and as a part
of all CPUs. By the kernel's accounts, the time of assay's programs per switch, all of them together
and sampled waits included. Requires root."""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

CPUS = os.cpu_count()
TICKS = os.sysconf("SC_CLK_TCK")
RATES = (10_000, 100_000, 500_000)
BAR_NS, BAR_AGENT, BAR_PEERS = 150, 0.01, 1 / 3


def tree(pid):
    """The process and all that it has started."""
    found = [pid]
    for process in found:
        try:
            for task in os.listdir(f"/proc/{process}/task"):
                found += map(int, open(f"/proc/{process}/task/{task}/children").read().split())
        except OSError:
            pass
    return found


def cpu_ns(pids):
    total = 0
    for pid in pids:
        try:
            fields = open(f"/proc/{pid}/stat").read().rsplit(") ", 1)[1].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:13]))
    return total * 1e9 / TICKS


def programs(pids):
    """Time and runs of the BPF programs that these processes have open."""
    found = {}
    for pid in pids:
        try:
            names = os.listdir(f"/proc/{pid}/fdinfo")
        except OSError:
            continue
        for name in names:
            try:
                lines = open(f"/proc/{pid}/fdinfo/{name}").read().splitlines()
            except OSError:
                continue
            values = dict(line.split(":", 1) for line in lines if ":" in line)
            if "run_time_ns" in values:
                found[values["prog_id"]] = (int(values["run_time_ns"]), int(values["run_cnt"]))
    return found


def runs(command):
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def tools(build, directory, seconds):
    assay = os.path.join(build, "assay")
    many = str(int(seconds) + 30)
    result = {"nothing": None,
              "assay record -m wall -a": [assay, "record", "-q", "-a", "-m", "wall", "-d", many, "-o",
                                          f"{directory}/assay.pb.gz"]}
    # bcc's needs the kernel's headers; that of libbpf-tools, by the same project, needs none.
    for name, arguments in (("offcputime-bpfcc", ["-f"]), ("offcputime", [])):
        program = shutil.which(name)
        if program and runs([program, *arguments, "1"]):
            result["bcc offcputime"] = [program, *arguments, many]
            break
    if shutil.which("perf"):
        result["perf sched record"] = ["perf", "sched", "record", "-o", f"{directory}/perf.data",
                                       "sleep", many]
    return result


def measure(load, rate, seconds, command):
    """ns per switch of the load, of the tool, of its BPF programs; and switches per second."""
    tool = None
    if command:
        tool = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                start_new_session=True)
        time.sleep(6)  # it has attached by then
        if tool.poll() is not None:
            return None
    pids = tree(tool.pid) if tool else []
    own, bpf = cpu_ns(pids), programs(pids)
    text = subprocess.run([load, str(rate), str(seconds)], check=True, capture_output=True,
                          text=True).stdout
    switches, took = map(float, text.split())
    pids = tree(tool.pid) if tool else []
    own = cpu_ns(pids) - own
    deltas = [(value[0] - bpf.get(key, (0, 0))[0], value[1] - bpf.get(key, (0, 0))[1])
              for key, value in programs(pids).items()]
    # Other threads of the machine switch, too: the program that runs at each switch counts them.
    runs = max((count for _, count in deltas), default=0) or 1
    spent = sum(time_ns for time_ns, _ in deltas) / runs
    if tool:
        os.killpg(tool.pid, signal.SIGKILL)
        tool.wait()
    return {"load": took / switches, "own": own / switches, "bpf": spent,
            "rate": switches / seconds}


def measure_agent(build, load, rate, directory, windows=3):
    """The part of all CPUs that the agent takes beside such a load, in each window of ten seconds but
    the first, and whether it still measures wall-clock time at the end."""
    assay, data = os.path.join(build, "assay"), f"{directory}/agent-{rate}"
    log = open(f"{directory}/agent-{rate}.log", "w+")
    agent = subprocess.Popen([assay, "agent", "--server", "http://127.0.0.1:9", "--data", data],
                             stderr=log)
    while "Sampling by" not in open(log.name).read():
        if agent.poll() is not None:
            raise SystemExit(open(log.name).read())
        time.sleep(0.1)
    time.sleep(20)  # what runs here has been learned by then
    other = subprocess.Popen([load, str(rate), str(10 * (windows + 2))], stdout=subprocess.DEVNULL)
    time.sleep(10)
    shares = []
    for _ in range(windows):
        own, began = used(agent.pid), time.monotonic()
        time.sleep(10)
        shares.append((used(agent.pid) - own) / 1e9 / (time.monotonic() - began) / CPUS)
    status = json.loads(subprocess.run([assay, "agent", "status", "--data", data, "--json"], check=True,
                                       capture_output=True).stdout)
    for process in (other, agent):
        process.kill()
        process.wait()
    return shares, status["collectors"]["wall"]["on"]


def used(pid):
    return cpu_ns([pid]) + sum(time_ns for time_ns, _ in programs([pid]).values())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if os.getuid():
        sys.exit("wall.py: root is required")
    stats = "/proc/sys/kernel/bpf_stats_enabled"
    load = os.path.join(options.build, "bench/bench-wall-switch")
    missed = []
    with tempfile.TemporaryDirectory() as directory:
        commands = tools(options.build, directory, options.seconds)
        for name in ("bcc offcputime", "perf sched record"):
            if name not in commands:
                print(f"({name} is not installed, or does not run here)")
        print(f"{'switches/s':>11} {'tool':26} {'ns/switch':>10} {'of it own':>10} {'of all CPUs':>12}")
        for rate in RATES:
            results = {name: [] for name in commands}
            for _ in range(options.rounds):
                for name, command in commands.items():
                    found = measure(load, rate, options.seconds, command)
                    if found:
                        results[name].append(found)
            base = min(found["load"] for found in results["nothing"])
            added = {}
            for name, all_found in results.items():
                if name == "nothing" or not all_found:
                    continue
                extra = statistics.median(found["load"] - base + found["own"] for found in all_found)
                own = statistics.median(found["own"] for found in all_found)
                got = statistics.median(found["rate"] for found in all_found)
                added[name] = extra
                print(f"{got:11.0f} {name:26} {extra:10.0f} {own:10.0f} {extra * got / 1e9 / CPUS:12.2%}",
                      flush=True)
            ours = added.get("assay record -m wall -a")
            for name, value in added.items():
                if ours is not None and not name.startswith("assay") and ours > BAR_PEERS * value:
                    missed.append(f"{rate}/s: {ours:.0f} ns beside {value:.0f} ns of {name}")
        before = open(stats).read()
        open(stats, "w").write("1")
        try:
            found = measure(load, 0, options.seconds, commands["assay record -m wall -a"])
        finally:
            open(stats, "w").write(before)
        print(f"\nBPF programs, by the kernel: {found['bpf']:.0f} ns per switch at "
              f"{found['rate']:.0f} switches/s, sampled waits included (bar: {BAR_NS} without them)")
        for rate in RATES[1:]:
            shares, on = measure_agent(options.build, load, rate, directory)
            text = ", ".join(f"{share:.2%}" for share in shares)
            print(f"The agent at {rate} switches/s: {text} of all CPUs in windows of 10 s; wall-clock "
                  f"time is {'on' if on else 'off'} (bar: {BAR_AGENT:.0%})", flush=True)
            if max(shares) > BAR_AGENT:
                missed.append(f"the agent takes {max(shares):.2%} at {rate}/s")
        if found["bpf"] > BAR_NS:
            missed.append(f"{found['bpf']:.0f} ns per switch; the bar is {BAR_NS}")
    for text in missed:
        print(f"MISSED {text}")


main()
