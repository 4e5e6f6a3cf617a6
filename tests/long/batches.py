# SPDX-License-Identifier: Apache-2.0
"""A Python service in one process: `batches.py SECONDS SEED`. Batches of records come at random times;
each is read from JSON, checked, sorted, counted and written."""
import collections
import hashlib
import json
import random
import re
import sys
import time


def records(source):
    return json.dumps([{"id": source.randrange(10**6), "name": f"record {source.random():.9f}",
                        "tags": source.choices(["red", "green", "blue"], k=4)} for _ in range(40)])


def check(batch):
    return [r for r in batch if re.fullmatch(r"record \d\.\d+", r["name"])]


def arrange(batch):
    return sorted(batch, key=lambda r: (r["tags"], r["name"]))


def count(batch):
    return collections.Counter(tag for r in batch for tag in r["tags"])


def score(batch):
    total = 0
    for record in batch:
        for letter in record["name"]:
            total = (total * 31 + ord(letter)) % 1000003
    return total


def write(batch, counts, total):
    text = "\n".join(f"{r['id']} {r['name']} {','.join(r['tags'])}" for r in batch)
    return hashlib.sha256(f"{text}{counts}{total}".encode()).hexdigest()


def handle(text):
    batch = arrange(check(json.loads(text)))
    return write(batch, count(batch), score(batch))


def main():
    source = random.Random(sys.argv[2])
    texts = [records(source) for _ in range(100)]
    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        handle(source.choice(texts))
        time.sleep(source.expovariate(1000))


main()
