#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""spans.py RECORDING.otlp SAMPLES [TYPE [go]] <TRUTH: holds each sample's ids of a recording of
subjects/spans.c to what the program wrote down. A sample in a span has that span's ids and its
route; one outside has none; at least SAMPLES were looked at, and the share of samples with ids is that of
the program's CPU time. With `go`, samples of a span's thread may have no ids now and then, when Go's
scheduler has it; spans of thread 0 in TRUTH may be any thread's."""

import bisect
import collections
import sys

import recording

EDGE_NS = 1_000_000  # the recorder converts between clocks once
GO = sys.argv[4:] == ["go"]
ROUTES = ["/cart", "/user/{id}", "/"]

Sample = collections.namedtuple("Sample", "labels trace span times values")


def text(value):
    return value.decode("utf-8", "replace")


def any_value(data):
    for number, value in recording.fields(data):
        if number == 1:
            return text(value)
        if number == 3:
            return value
    return None


def fixed64(value):
    return [int.from_bytes(value[i : i + 8], "little") for i in range(0, len(value), 8)]


def shared_labels(resource):
    found = {}
    for pair in recording.message(resource)[1]:
        parts = recording.message(pair)
        found[text(parts[1][0])] = any_value(parts[2][0])
    return found


def read(path, wanted):
    """The samples of the type `wanted`."""
    top = recording.message(open(path, "rb").read())
    tables = recording.message(top[2][0])
    strings = [text(value) for value in tables[5]]
    links = []
    for link in tables[4]:
        parts = recording.message(link)
        links.append((parts[1][0].hex() if parts[1] else "", parts[2][0].hex() if parts[2] else ""))
    attributes = []
    for attribute in tables[6]:
        parts = recording.message(attribute)
        key = strings[parts[1][0]] if parts[1] else ""
        attributes.append((key, any_value(parts[2][0]) if parts[2] else None))
    for resource in top[1]:
        resource = recording.message(resource)
        shared = shared_labels(resource[1][0]) if resource[1] else {}
        for scope in resource[2]:
            for profile in recording.message(scope)[2]:
                profile = recording.message(profile)
                kind = recording.message(profile[1][0])
                if strings[kind[1][0]] != wanted:
                    continue
                for sample in profile[2]:
                    parts = recording.message(sample)
                    labels = dict(shared)
                    for some in parts[2]:
                        for index in recording.numbers(some):
                            labels[attributes[index][0]] = attributes[index][1]
                    link = links[parts[3][0]] if parts[3] else ("", "")
                    times = [time for some in parts[5] for time in fixed64(some)]
                    values = [value for some in parts[4] for value in recording.numbers(some)]
                    yield Sample(labels, *link, times, values)


def truth_of(lines):
    """By thread: spans in order."""
    found = {}
    for line in lines:
        tid, trace, span, *times, route = line.split()
        found.setdefault(int(tid), []).append((*map(int, times), trace, span, ROUTES[int(route)]))
    return found


def judge(time, ids, route, spans):
    """1: inside a span, and right; 0: outside, and right; None: at an edge; or what is wrong."""
    at = bisect.bisect_right(spans, (time,)) - 1
    if at < 0:
        return None
    before, begun, ending, ended, until, trace, span, name = spans[at]
    if begun + EDGE_NS <= time <= ending - EDGE_NS:
        if GO and ids == ("", ""):
            return "without"
        if ids != (trace, span):
            return f"at {time} the span is {trace} {span}, and not {ids}"
        return 1 if route == name else f"at {time} the route is {name}, and not {route}"
    if ended + EDGE_NS <= time <= until - EDGE_NS:
        return 0 if ids == ("", "") and not route else f"at {time} there is no span, and not {ids}"
    return None


def judge_anywhere(time, ids, route, spans):
    """The same where any thread may have any span."""
    if ids == ("", ""):
        return 0
    if ids not in spans:
        return f"at {time} there are ids of no span: {ids}"
    before, _, _, ended, _, _, _, name = spans[ids]
    if not before - EDGE_NS <= time <= ended + EDGE_NS:
        return f"at {time} the span {ids} isn't active"
    return 1 if route == name else f"at {time} the route is {name}, and not {route}"


def main():
    path, least = sys.argv[1], int(sys.argv[2])
    kind = sys.argv[3] if len(sys.argv) > 3 else "cpu"
    truth = truth_of(sys.stdin)
    everything = {(span[5], span[6]) for spans in truth.values() for span in spans}
    anywhere = {(span[5], span[6]): span for span in truth.get(0, [])}
    inside = outside = edges = unknown = taken = with_ids = without = 0
    wrong = []
    for sample in read(path, kind):
        spans = anywhere or truth.get(sample.labels.get("tid") or sample.labels.get("thread.id"))
        ids = (sample.trace, sample.span)
        if not spans:
            continue
        for time in sample.times:
            if not anywhere and spans[0][0] <= time <= spans[-1][4]:
                taken += 1
                with_ids += ids != ("", "")
            how = judge_anywhere if anywhere else judge
            found = how(time, ids, sample.labels.get("http.route"), spans)
            edges += found is None
            without += found == "without"
            if found == "without":
                continue
            inside += found == 1
            outside += found == 0
            if isinstance(found, str):
                wrong.append(found)
            # At an edge it may be an inner span's, but never made up.
            unknown += found is None and ids != ("", "") and ids not in everything
    looked = inside + outside + len(wrong)
    print(f"{looked} samples: {inside} inside, {outside} outside, {len(wrong)} wrong, {edges} edges")
    share = with_ids / max(taken, 1)
    print(f"{unknown} ids at edges of no known span; {share:.3f} of {taken} samples have ids")
    if GO:
        print(f"{without} samples of spans have no ids")
    for line in wrong[:10]:
        print(line)
    # Four of five parts of the threads' CPU time are in spans; four standard errors.
    if kind == "cpu" and not anywhere and abs(share - 0.8) > max(0.02, 4 * (0.16 / max(taken, 1)) ** 0.5):
        print("the share of samples in spans is 0.8")
        sys.exit(1)
    if wrong or looked < least or not inside or not outside or unknown > edges / 8 + 1:
        sys.exit(1)


main()
