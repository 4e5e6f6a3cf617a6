# SPDX-License-Identifier: Apache-2.0
"""Sends a fleet whose every stack is known, and compares what the server says of it.

A thousand services have a hundred functions each, most of them their own and small, some shared by
all, one of them recursive. The base is the fleet an hour before.
"""
import collections
import concurrent.futures
import json
import os
import random
import re
import subprocess
import sys
import urllib.parse
import urllib.request

URL = sys.argv[1]
SERVICES = 1000
BASE, NEW = 1794700000, 1794703600
RANGE = {"query": "samples", "from": str(NEW - 60), "to": str(NEW + 60)}
BASE_RANGE = {"base_from": str(BASE - 60), "base_to": str(BASE + 60)}


def get(path, **parameters):
    pairs = urllib.parse.urlencode({**RANGE, **parameters}, doseq=True)
    with urllib.request.urlopen(f"{URL}/api/v1/{path}?{pairs}") as answer:
        body = answer.read()
    return json.loads(body) if parameters.get("format") in (None, "flame") else body


# ---- the fleet ----

def stacks_of(service, rng, scale):
    out = {}
    for i in range(80):
        path = ["main", "run"]
        path += [f"svc{service}.step{rng.randrange(30)}" for _ in range(rng.randrange(1, 4))]
        if i % 7 == 0:
            path += ["walk", f"svc{service}.visit", "walk"]
        if i % 3 == 0:
            path += ["entry_SYSCALL", f"do_call{rng.randrange(20)}"]
        else:
            path += [f"svc{service}.Leaf{rng.randrange(60)}"]
        out[tuple(path)] = out.get(tuple(path), 0) + rng.randrange(1, 50) * scale
    return out


def push(job):
    service, time, stacks = job
    body = "".join(f"{';'.join(path)} {value}\n" for path, value in stacks.items())
    request = urllib.request.Request(
        f"{URL}/api/v1/push?service_name=s{service}&from={time}&format=folded",
        data=body.encode(), method="POST")
    urllib.request.urlopen(request).read()


def make():
    rng = random.Random(1)
    sides = [collections.Counter(), collections.Counter()]
    jobs = []
    for service in range(SERVICES):
        for side, time in enumerate((BASE, NEW)):
            stacks = stacks_of(service, rng, 1 + (side and service % 3))
            sides[side].update(stacks)
            jobs.append((service, time, stacks))
    return sides, jobs


def send(jobs):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(push, jobs))


# ---- the truth ----

def functions_of(stacks, name=lambda frame: frame):
    flat, cum = collections.Counter(), collections.Counter()
    for path, value in stacks.items():
        flat[path[-1]] += value
        for frame in set(path):
            cum[frame] += value
    return {f: (flat[f], cum[f]) for f in cum}


def matched(stacks, pattern, start=0):
    return sum(v for path, v in stacks.items() if any(re.search(pattern, f) for f in path[start:]))


def rows_of(answer):
    return [(r["function"], (r["flat"], r["cum"])) for r in answer["functions"]]


def tree_totals(flame, column="self"):
    """{path: total} of each node, and the value under "(other)"."""
    names = [flame["strings"][i] for i in flame["functions"]["name"]]
    up, function = flame["nodes"]["up"], flame["nodes"]["function"]
    totals, paths, other = list(flame[column][0]), [()], 0
    for node in range(1, len(totals)):
        paths.append(paths[node - up[node - 1]] + (names[function[node - 1]],))
        if paths[node][-1] == "(other)":
            other += totals[node]
    for node in range(len(totals) - 1, 0, -1):
        totals[node - up[node - 1]] += totals[node]
    return dict(zip(paths, totals)), other


def prefix_totals(stacks):
    out = collections.Counter()
    for path, value in stacks.items():
        for length in range(len(path) + 1):
            out[path[:length]] += value
    return out


def check_tree(flame, stacks, column="self", cut="cut"):
    totals, other = tree_totals(flame, column)
    truth = prefix_totals(stacks)
    for path, total in totals.items():
        if path[-1:] != ("(other)",):
            assert truth[path] == total, (path, total, truth[path])
    assert flame[cut] == [other], (flame[cut], other)
    return other


# ---- what is asked ----

def check_top(stacks):
    truth = functions_of(stacks)
    total = sum(stacks.values())
    answer = get("top", limit=1000000)
    assert dict(rows_of(answer)) == truth
    assert len(answer["functions"]) == answer["function_count"] == len(truth)
    assert answer["total"] == total and answer["quality"]["cut"] == 0
    orders = {("flat", "desc"): lambda f: (-truth[f][0], -truth[f][1], f),
              ("cum", "desc"): lambda f: (-truth[f][1], -truth[f][0], f),
              ("name", "asc"): lambda f: f}
    for (sort, order), key in orders.items():
        wanted = sorted(truth, key=key)
        for offset in (0, 7, 1000, len(truth) - 3):
            page = get("top", sort=sort, order=order, limit=5, offset=offset)
            assert [f for f, _ in rows_of(page)] == wanted[offset:offset + 5], (sort, offset)
            assert page["function_count"] == len(truth)
        other = {"asc": "desc", "desc": "asc"}[order]
        page = get("top", sort=sort, order=other, limit=5)
        assert [f for f, _ in rows_of(page)] == wanted[::-1][:5], (sort, other)


def check_search(stacks):
    truth = functions_of(stacks)
    for parameter, text, pattern in (("search", "leaf5", "(?i)leaf5"), ("search", "Leaf5", "Leaf5"),
                                     ("search", "leaf5.", "leaf5\\."), ("search", "walk", "walk"),
                                     ("regex", "^svc9.*(Leaf|step)1", "^svc9.*(Leaf|step)1"),
                                     ("regex", "entry_SYSCALL|\\.visit$", "entry_SYSCALL|\\.visit$")):
        answer = get("top", limit=1000000, **{parameter: text})
        wanted = {f: v for f, v in truth.items() if re.search(pattern, f)}
        assert dict(rows_of(answer)) == wanted, text
        assert answer["matched"] == matched(stacks, pattern), text
        assert answer["function_count"] == len(wanted), text
    # Inside of a zoom, what is above the frame doesn't count.
    inside = {p: v for p, v in stacks.items() if p[:2] == ("main", "run")}
    answer = get("top", focus=["main", "run"], regex="^main$|Leaf1")
    assert answer["matched"] == matched(inside, "^main$|Leaf1", 1)


def check_simpler(stacks):
    hidden = collections.Counter()
    for path, value in stacks.items():
        hidden[tuple(f for f in path if f not in ("run", "walk"))] += value
    answer = get("top", limit=1000000, hide=["run", "walk"])
    assert dict(rows_of(answer)) == functions_of(hidden)
    once = collections.Counter()
    for path, value in stacks.items():
        kept = []
        for frame in path:
            if frame in kept:
                del kept[kept.index(frame):]
            kept.append(frame)
        once[tuple(kept)] += value
    answer = get("top", limit=1000000, recursion="once")
    assert dict(rows_of(answer)) == functions_of(once)


def check_flame(stacks):
    answer = get("flame", max_nodes=500)
    other = check_tree(answer["flame"], stacks)
    assert other > 0 and answer["quality"]["cut"] == other
    assert answer["quality"]["total"] == sum(stacks.values())
    part = get("flame", max_nodes=500, focus=["main", "run", "svc7.step1"])
    below = {p: v for p, v in stacks.items() if p[:3] == ("main", "run", "svc7.step1")}
    check_tree(part["flame"], below)


def around(stacks, function):
    """Direct neighbours, the stacks below and those above turned around."""
    callers, callees = collections.Counter(), collections.Counter()
    below, above = collections.Counter(), collections.Counter()
    for path, value in stacks.items():
        places = [i for i, f in enumerate(path) if f == function]
        if not places:
            continue
        for name in {path[i - 1] if i else "" for i in places}:
            callers[name] += value
        for name in {path[i + 1] for i in places if i + 1 < len(path)}:
            callees[name] += value
        below[path[places[0]:]] += value
        above[path[places[0]::-1]] += value
    return callers, callees, below, above


def check_callers(stacks):
    truth = functions_of(stacks)
    for function in ("entry_SYSCALL", "walk", "main", "svc3.step1", "do_call7"):
        answer = get("callers", function=function, limit=1000000, max_nodes=200)
        assert (answer["flat"], answer["cum"]) == truth[function], function
        assert answer["total"] == sum(stacks.values())
        callers, callees, below, above = around(stacks, function)
        assert {r["function"]: r["cum"] for r in answer["callers"]} == callers, function
        assert {r["function"]: r["cum"] for r in answer["callees"]} == callees, function
        check_tree(answer["callee_tree"], below)
        check_tree(answer["caller_tree"], above)
        table = get("top", limit=1000000, below=function)
        assert dict(rows_of(table)) == functions_of(below), function
        table = get("top", limit=1000000, above=function)
        assert {f: v[1] for f, v in rows_of(table)} == {f: v[1] for f, v in functions_of(above).items()}


def hide(stacks, hidden):
    out = collections.Counter()
    for path, value in stacks.items():
        out[tuple(f for f in path if f not in hidden)] += value
    return out


def check_callers_simpler(stacks):
    shown = hide(stacks, ("run", "entry_SYSCALL"))
    for function in ("do_call7", "walk"):
        answer = get("callers", function=function, limit=1000000, max_nodes=200,
                     hide=["run", "entry_SYSCALL"])
        assert (answer["flat"], answer["cum"]) == functions_of(shown)[function], function
        callers, callees, below, above = around(shown, function)
        assert {r["function"]: r["cum"] for r in answer["callers"]} == callers, function
        assert {r["function"]: r["cum"] for r in answer["callees"]} == callees, function
        check_tree(answer["callee_tree"], below)
        check_tree(answer["caller_tree"], above)
    # Of the stacks below another function.
    part = around(stacks, "entry_SYSCALL")[2]
    answer = get("callers", function="do_call7", below="entry_SYSCALL", max_nodes=200)
    assert answer["cum"] == functions_of(part)["do_call7"][1]
    check_tree(answer["caller_tree"], around(part, "do_call7")[3])


def check_callers_diff(base, new):
    for function in ("entry_SYSCALL", "svc3.step1"):
        answer = get("callers", function=function, limit=1000000, max_nodes=200, normalize="none",
                     **BASE_RANGE)
        old, now = around(base, function), around(new, function)
        assert (answer["flat"], answer["cum"]) == functions_of(new)[function], function
        assert (answer["base_flat"], answer["base_cum"]) == functions_of(base)[function], function
        assert (answer["base_total"], answer["total"]) == (sum(base.values()), sum(new.values()))
        assert answer["scale"] == 1
        for key, i in (("callers", 0), ("callees", 1)):
            rows = {r["function"]: (r["base_cum"], r["cum"]) for r in answer[key]}
            assert rows == {f: (old[i][f], now[i][f]) for f in old[i].keys() | now[i].keys()}, function
        for key, i in (("callee_tree", 2), ("caller_tree", 3)):
            check_tree(answer[key], now[i])
            check_tree(answer[key], old[i], "base", "base_cut")
    # Scaled as the comparison is.
    answer = get("callers", function="walk", normalize="total", **BASE_RANGE)
    assert abs(answer["scale"] - sum(new.values()) / sum(base.values())) < 1e-6


def check_diff(base, new):
    old, now = functions_of(base), functions_of(new)
    answer = get("diff", limit=1000000, normalize="none", order="desc", **BASE_RANGE)
    rows = {r["function"]: ((r["base_flat"], r["base_cum"]), (r["new_flat"], r["new_cum"]))
            for r in answer["functions"]}
    assert rows == {f: (old.get(f, (0, 0)), now.get(f, (0, 0))) for f in old.keys() | now.keys()}
    assert all(r["flat_change"] == r["new_flat"] - r["base_flat"] for r in answer["functions"])
    changes = [r["flat_change"] for r in answer["functions"]]
    assert changes == sorted(changes, reverse=True)
    assert (answer["base_total"], answer["new_total"]) == (sum(base.values()), sum(new.values()))
    both = get("diff", limit=4, normalize="none", **BASE_RANGE)
    assert [r["flat_change"] for r in both["functions"]] == changes[:2] + changes[-2:]
    found = get("diff", limit=3, normalize="none", search="walk", **BASE_RANGE)
    assert (found["matched"], found["matched_base"]) == (matched(new, "walk"), matched(base, "walk"))
    answer = get("diff", normalize="none", format="flame", max_nodes=500, **BASE_RANGE)
    assert check_tree(answer["flame"], new) == answer["new"]["quality"]["cut"] > 0
    assert check_tree(answer["flame"], base, "base", "base_cut") == answer["base"]["quality"]["cut"]


def export(kind, **parameters):
    """Stacks of an exported file, as `assay` reads them."""
    name = f"fleet.{kind}"
    with open(name, "wb") as file:
        file.write(get("profile", format=kind, **parameters))
    out = collections.Counter()
    folded = subprocess.run([os.environ["ASSAY"], "convert", name, "--input-format", kind, "--to", "folded", "-o", "-"],
                            check=True, capture_output=True, text=True).stdout
    for line in folded.splitlines():
        stack, value = line.rsplit(" ", 1)
        out[tuple(stack.split(";"))] += int(value)
    return out


def check_exports(stacks):
    for kind in ("pprof", "folded", "speedscope", "otlp"):
        assert export(kind) == stacks, kind
    below = {p: v for p, v in stacks.items() if p[:3] == ("main", "run", "svc7.step1")}
    assert export("pprof", focus=["main", "run", "svc7.step1"]) == below
    # A page that is taken along has all stacks, too.
    page = get("flame", format="html").decode()
    flame = json.loads(re.search(r'id="flame-data">(.*?)</script>', page, re.DOTALL).group(1))
    assert tree_totals(flame) == (prefix_totals(stacks), 0)


def main():
    (base, new), jobs = make()
    # Exported files are whole, which takes more memory than tables.
    if sys.argv[2:] == ["exports"]:
        return check_exports(new)
    send(jobs)
    check_top(new)
    check_search(new)
    check_simpler(new)
    check_flame(new)
    check_callers(new)
    check_callers_simpler(new)
    check_diff(base, new)
    check_callers_diff(base, new)


main()
