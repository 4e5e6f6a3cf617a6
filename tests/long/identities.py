#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks every route as every identity: identities.py URL ROUTES, beside files TENANT-ROLE.token. See
identities.sh."""

import base64
import http.client
import pathlib
import sys
import urllib.parse

SECRETS = {tenant: [f"only_{tenant}_knows", f"service-of-{tenant}", f"valueof{tenant}"] for tenant in ("one", "two")}
RANGE = "from=1980-01-01&to=now%2B1d"
QUERIES = ["", f"?{RANGE}", f"?query=process_cpu:samples:count::&{RANGE}",
           f"?query=process_cpu:samples:count::%7Bservice_name%3D%22service-of-one%22%7D&{RANGE}",
           f"?query=process_cpu:samples:count::&{RANGE}&tenant=one"]  # fmt: skip
OPEN = set((pathlib.Path(__file__).parent.parent / "server" / "open_routes.txt").read_text().split())


def identities():
    """(name, tenant that it may read, headers)"""
    yield "nobody", None, {}
    for path in sorted(pathlib.Path(".").glob("*.token")):
        name, token = path.stem, path.read_text().strip()
        tenant, role = name.split("-")
        reads = tenant if role in ("read", "admin", "all") else None
        yield name, reads, {"Authorization": f"Bearer {token}"}
        basic = base64.b64encode(f"user:{token}".encode()).decode()
        yield f"{name}, basic", reads, {"Authorization": f"Basic {basic}"}
        # As another tenant, by the headers that other systems use.
        yield f"{name}, X-Scope-OrgID", reads, {"Authorization": f"Bearer {token}", "X-Scope-OrgID": "one"}
    token = pathlib.Path("one-read.token").read_text().strip()
    for name, value in {"cut": token[:-1], "longer": token + "a", "case": token.swapcase(), "empty": "",
                        "null": token + "%00", "twice": f"{token}, {token}"}.items():  # fmt: skip
        yield f"one-read, {name}", None, {"Authorization": f"Bearer {value}"}
    yield "one-read, other scheme", None, {"Authorization": f"Digest {token}"}
    yield "one-read, cookie", None, {"Cookie": f"token={token}"}


def ask(address, method, path, headers, body):
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, text


def main():
    address = urllib.parse.urlsplit(sys.argv[1])
    routes = [line.split() for line in open(sys.argv[2])]
    asked, wrong, leaks = 0, [], []
    known = list(identities())
    seen_own = set()
    for name, reads, headers in known:
        invalid = not reads and not name.endswith(("ingest", "ingest, basic", "ingest, X-Scope-OrgID"))
        for method, pattern in routes:
            if method == "DELETE" or "/admin/" in pattern or (method == "POST" and pattern == "/api/v1/control"):
                continue  # as strangers only: they change what the others read
            body = b"{}" if method == "POST" else None
            kind = {"Content-Type": "application/json"} if body else {}
            for query in QUERIES if method == "GET" else QUERIES[:1]:
                path = pattern.replace("*", "service_name") + query
                status, text = ask(address, method, path, headers | kind, body)
                asked += 1
                if status >= 500 and status != 501:
                    wrong.append(f"{method} {path} as {name}: {status} {text[:200]}")
                if invalid and pattern not in OPEN and status not in (401, 403, 429):
                    wrong.append(f"{method} {path} as {name}: {status}")
                for tenant, words in SECRETS.items():
                    for word in words:
                        # A question that is repeated in the answer tells nobody anything.
                        if word.encode() not in text or word in urllib.parse.unquote(path):
                            continue
                        if reads == tenant:
                            seen_own.add(tenant)
                        else:
                            leaks.append(f"{method} {path} as {name} shows {word}")
    print(f"{asked} requests, {len(known)} identities, {len(routes)} routes")
    if wrong or leaks:
        sys.exit("\n".join((leaks + wrong)[:30]))
    if seen_own != set(SECRETS):
        sys.exit(f"Only {seen_own} could read what they had sent.")


main()
