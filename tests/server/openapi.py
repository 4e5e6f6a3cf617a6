# SPDX-License-Identifier: Apache-2.0
"""openapi.py URL AGENT RECORDING BUILD: asks a server for its document and holds it to it. Each operation that can be
asked is asked with its documented parameters, one after the other; its answer has to be of the
documented kind and shape, errors too; a parameter that isn't documented has to be refused. Only
words of JSON Schema that the document uses are understood; any other is an error here."""

import json
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

URL, AGENT, RECORDING, BUILD = sys.argv[1:]
AT = str(int(time.time()))
WORDS = {"type", "properties", "required", "items", "additionalProperties", "enum", "$ref",
         "description", "minimum", "maximum", "anyOf"}
KINDS = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
# Values with which each parameter can be tried; what isn't here is asked with none.
VALUES = {"query": "cpu", "from": "1980-01-01", "to": "now+1d", "limit": "3", "sort": "cum",
          "rows": "package", "split": "version", "max_nodes": "100", "format": "json", "span_id": "00000000000000aa",
          "trace_id": "000000000000000000000000000000bb", "function": "main.isOdd",
          "base_query": "cpu", "base_from": "1980-01-01", "base_to": "now", "normalize": "none",
          "step": "3650d", "faster": "30%", "at": AT, "window": "1h", "part": "0", "build_id": BUILD, "path": "/src/true.c", "agent": AGENT, "focus": "runtime/pprof.Do", "group_by": "endpoint", "count": "cum", "until": "now",
          "agg": "average", "names": "original", "aggregation": "avg", "maxNodes": "50", "max-nodes": "50", "label": "endpoint", "groupBy": "endpoint",
          "leftQuery": "cpu", "rightQuery": "cpu", "leftFrom": "1980-01-01",
          "band": "p50", "type": "cpu", "per": "total",
          "search": "main", "regex": "^main", "offset": "1", "order": "asc", "hide": "main.isOdd",
          "fold": "*", "only": "x", "recursion": "once", "below": "main.isOdd", "above": "main.isOdd",
          "service": "shop", "state": "open", "version": "1", "name": "app.js", "rightFrom": "1980-01-01", "leftUntil": "now", "rightUntil": "now"}
# Short names of types stand for what the range has, and it has nothing in the last hour.
ALWAYS = ["query", "from", "to"]
NEEDED = {"/api/v1/timeseries": ["step"], "/api/v1/explain": ["window"]}


def ask(path, pairs, method="GET"):
    request = urllib.request.Request(f"{URL}{path}?{urllib.parse.urlencode(pairs)}", method=method)
    try:
        answer = urllib.request.urlopen(request)
    except urllib.error.HTTPError as error:
        answer = error
    return answer.status, answer.headers, answer.read()


def follow(document, part):
    while "$ref" in part:
        assert set(part) <= {"$ref", "description"}, part
        target = document
        for key in part["$ref"].removeprefix("#/").split("/"):
            target = target[key]
        part = target
    return part


def is_kind(value, kind):
    if kind in ("integer", "number"):
        real = isinstance(value, (int, float)) and not isinstance(value, bool)
        return real and (kind == "number" or value == int(value))
    return isinstance(value, KINDS[kind])


def check(document, value, schema, where):
    schema = follow(document, schema)
    unknown = set(schema) - WORDS
    assert not unknown, f"{where}: the words {unknown} aren't understood"
    if "anyOf" in schema:
        reasons = []
        for choice in schema["anyOf"]:
            try:
                return check(document, value, choice, where)
            except AssertionError as error:
                reasons.append(str(error))
        assert False, reasons
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    fits = not kinds or any(is_kind(value, kind) for kind in kinds)
    assert fits, f"{where}: {value!r} is no {kinds}"
    assert "enum" not in schema or value in schema["enum"], f"{where}: {value!r}"
    if isinstance(value, dict):
        for key in schema.get("required", []):
            assert key in value, f"{where}: {key} is missing"
        more = schema.get("additionalProperties", True)
        for key, inner in value.items():
            if key in schema.get("properties", {}):
                check(document, inner, schema["properties"][key], f"{where}.{key}")
            else:
                assert more is not False, f"{where}: {key} isn't documented"
                if isinstance(more, dict):
                    check(document, inner, more, f"{where}.{key}")
    if isinstance(value, list) and "items" in schema:
        for index, inner in enumerate(value):
            check(document, inner, schema["items"], f"{where}[{index}]")


def check_answer(document, operation, where, answer):
    status, headers, body = answer
    documented = operation["responses"].get(str(status))
    assert documented, f"{where}: {status} isn't documented: {body[:300]}"
    kind = headers.get_content_type()
    content = documented.get("content", {})
    assert kind in content, f"{where}: {status} came as {kind}, documented are {list(content)}"
    if kind == "application/json":
        check(document, json.loads(body), content[kind].get("schema", {}), where)
    return status


def try_operation(document, path, operation):
    listed = [follow(document, p) for p in operation.get("parameters", [])]
    names = [p["name"] for p in listed if p["in"] == "query"]
    needed = [p["name"] for p in listed if p.get("required") and p["in"] == "query"]
    needed += [n for n in ALWAYS if n in names and n not in needed] + NEEDED.get(path, [])
    real = path.replace("{name}", "endpoint").replace("{id}", RECORDING)
    real = real.replace("{build_id}", BUILD).replace("{path}", f"{BUILD}/executable")
    values = dict(VALUES, query="wall") if path == "/api/v1/triage" else VALUES
    base = [(n, values[n]) for n in needed]
    count = 0
    for extra in [None] + [n for n in names if n not in needed]:
        words = [p["schema"].get("enum", [VALUES[extra]]) for p in listed if p["name"] == extra] if extra else []
        pairs = base + ([(extra, VALUES[extra] if VALUES[extra] in words[0] else words[0][-1])] if extra else [])
        status = check_answer(document, operation, f"{path} {pairs}", ask(real, pairs))
        nobody = status == 404 and (
            extra in ("span_id", "trace_id")  # the function isn't there
            or (path == "/api/v1/callers" and extra in ("hide", "fold", "only")))
        assert status == 200 or nobody, f"{path} {pairs}: {status}"
        count += 1
    for name in needed:  # one missing: fine or a documented error
        check_answer(document, operation, f"{path} without {name}",
                     ask(real, [pair for pair in base if pair[0] != name]))
    for listed_one in listed:  # each documented word is taken, another isn't
        words = listed_one["schema"].get("enum", [])
        if listed_one["in"] != "query":
            continue
        name = listed_one["name"]
        rest = [pair for pair in base if pair[0] != name]
        for word in words:
            status = check_answer(document, operation, f"{path} {name}={word}",
                                  ask(real, rest + [(name, word)]))
            flow = name == "agg" and word != "average"  # which is asked of CPU time here
            flow = flow or word == "requests"  # which nobody has counted here
            assert status == (400 if flow else 200), f"{path} {name}={word}: {status}"
        if words:
            status = check_answer(document, operation, path, ask(real, rest + [(name, "wrong")]))
            assert status == 400, f"{path} takes {name}=wrong"
    if "x-other-parameters" not in operation:
        status, _, body = ask(real, base + [("frmo", "1")])
        message = json.loads(body)["message"]
        assert status == 400 and "frmo" in message or "has no parameters" in message, message
        if "from" in names:
            assert "the closest is from" in message, message
    status, headers, body = ask(real, base, "HEAD")
    assert status == 200 and not body, f"HEAD {path}: {status}"
    return count


def main():
    status, headers, body = ask("/api/v1/openapi.json", [])
    assert status == 200 and headers["ETag"]
    document = json.loads(body)
    count = sum(try_operation(document, path, methods["get"])
                for path, methods in document["paths"].items() if "get" in methods)
    print(f"{count} questions answered as documented.")
    assert count > 50, count
    request = urllib.request.Request(f"{URL}/api/v1/openapi.json",
                                     headers={"If-None-Match": headers["ETag"]})
    try:
        urllib.request.urlopen(request)
        sys.exit("a document that is known is sent again")
    except urllib.error.HTTPError as error:
        assert error.status == 304, error.status


main()
