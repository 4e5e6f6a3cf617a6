# SPDX-License-Identifier: Apache-2.0
"""connect_proto.py URL TYPE START END: Grafana's calls as protobuf over a server that has what
grafana.sh pushed."""

import struct
import sys
import urllib.request

from protobuf import field, varint

URL, TYPE, START, END = sys.argv[1:]
SELECTOR = '{service_name="shop"}'


def real(field, value):
    return varint(field << 3 | 1) + struct.pack("<d", value)


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """{number: [values]}; nested messages stay bytes."""
    found, at = {}, 0
    while at < len(data):
        tag, at = read_varint(data, at)
        if tag & 7 == 0:
            value, at = read_varint(data, at)
        elif tag & 7 == 1:
            value, at = struct.unpack("<d", data[at : at + 8])[0], at + 8
        else:
            assert tag & 7 == 2, tag
            length, at = read_varint(data, at)
            assert at + length <= len(data)
            value, at = data[at : at + length], at + length
        found.setdefault(tag >> 3, []).append(value)
    return found


def packed(data):
    values, at = [], 0
    while at < len(data):
        value, at = read_varint(data, at)
        values.append(value)
    return values


def call(method, body):
    request = urllib.request.Request(
        f"{URL}/querier.v1.QuerierService/{method}", body,
        {"Content-Type": "application/proto", "Connect-Protocol-Version": "1"})
    answer = urllib.request.urlopen(request)
    assert answer.headers["Content-Type"] == "application/proto"
    return fields(answer.read())


def main():
    times = lambda first: field(first, int(START)) + field(first + 1, int(END))
    select = field(1, TYPE) + field(2, SELECTOR) + times(3)

    types = call("ProfileTypes", times(1))
    assert list(types) == [1] and len(types[1]) == 1
    kind = {k: v[0].decode() for k, v in fields(types[1][0]).items()}
    assert kind == {1: TYPE, 2: "process_cpu", 4: "cpu", 5: "nanoseconds", 6: "cpu",
                    7: "nanoseconds"}, kind
    assert call("LabelNames", field(1, SELECTOR) + times(2)) == {
        1: [b"__name__", b"__period_type__", b"__period_unit__", b"__profile_type__",
            b"__service_name__", b"__type__", b"__unit__", b"pod", b"service_name"]}
    assert call("LabelValues", field(1, "pod") + field(2, SELECTOR) + times(3)) == {1: [b"a", b"b"]}
    sets = call("Series", field(2, "pod") + times(3))
    assert list(sets) == [2] and len(sets[2]) == 2, "labels_set is field 2"
    pair = fields(fields(sets[2][0])[1][0])
    assert pair[1] == [b"pod"], pair

    graph = fields(call("SelectMergeStacktraces", select + field(5, 16384))[1][0])
    names = [n.decode() for n in graph[1]]
    assert names[0] == "total" and set(names[1:]) == {"main", "handle", "query", "render", "idle"}
    levels = [packed(fields(level)[1][0]) for level in graph[2]]
    assert levels[0] == [0, 400, 0, 0], levels
    selves = {}
    for level in levels:
        for i in range(0, len(level), 4):
            selves[names[level[i + 3]]] = level[i + 2]
    assert selves == {"total": 0, "main": 0, "handle": 0, "query": 120, "render": 80,
                      "idle": 200}, selves
    assert graph[3] == [400] and graph[4] == [200]

    series = call("SelectSeries", select + field(5, "pod") + real(6, 60.0) + field(10, 3))
    first = fields(series[1][0])
    assert fields(first[1][0]) == {1: [b"pod"], 2: [b"b"]}
    point = fields(first[2][0])
    assert point[1] == [300.0] and point[2] == [1794700080000], point
    exemplar = fields(point[4][0])
    assert exemplar[3] == [b"00000000000000a1"] and exemplar[4] == [90], exemplar
    assert exemplar[6] == [b"1".rjust(32, b"0")]

    pgo = field(6, field(2, field(1, 1) + field(2, 1)))  # one location of each stack
    cut = call("SelectMergeProfile", select + pgo)
    assert all(len(packed(fields(sample)[1][0])) == 1 for sample in cut[2]), cut
    assert len(cut[2]) == 3

    heat = fields(call("SelectHeatmap", select + real(5, 60.0) + field(7, 1))[1][0])
    slot = fields(heat[2][0])
    assert len(slot[2][0]) == 20 * 8 and sum(packed(slot[3][0])) == 1, slot
    tree = call("SelectMergeStacktraces", select + field(6, 2))
    assert list(tree) == [2] and b"render" in tree[2][0]
    assert list(call("SelectMergeStacktraces", select + field(6, 3))) == [3]
    profile = fields(fields(call("SelectMergeStacktraces", select + field(6, 4))[5][0])[1][0])
    assert sum(packed(fields(s)[2][0])[0] for s in profile[2]) == 400
    spans = field(1, TYPE) + field(2, SELECTOR) + field(3, "00000000000000a2") + times(4)
    assert fields(call("SelectMergeSpanProfile", spans)[1][0])[3] == [80]
    both = call("Diff", field(1, select) + field(2, select))
    assert fields(both[1][0])[5] == fields(both[1][0])[6] == [400]


main()
