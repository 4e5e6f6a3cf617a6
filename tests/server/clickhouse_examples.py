#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the SQL examples of a page, and compares functions_by_hour with a report.
clickhouse_examples.py PAGE HOST:PORT TYPE <want.csv"""

import csv
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

page, address, kind = sys.argv[1:]


def ask(sql):
    body = (sql + " FORMAT TSV").encode()
    try:
        with urllib.request.urlopen(f"http://{address}/?database=assay", body) as answer:
            return [line.split("\t") for line in answer.read().decode().splitlines()]
    except urllib.error.HTTPError as error:
        sys.exit(f"{sql}\n{error.read().decode()[:1000]}")


examples = re.findall(r"```sql\n(.*?)\n```", open(page).read(), re.DOTALL)
if len(examples) != 10:
    sys.exit(f"{page} has {len(examples)} examples instead of 10.")
rows = [len(ask(example)) for example in examples]
# The fixture is of a day that has gone, without allocations: what asks for all of time has rows.
if not all(rows[i] for i in (2, 3, 5, 7, 8, 9)):
    sys.exit(f"Examples have no rows: {rows}")

want = {}
for row in csv.DictReader(sys.stdin):
    flat, cumulative = want.get(row["function"], (0, 0))
    want[row["function"]] = flat + int(row["flat"]), max(cumulative, int(row["cum"]))
got = {
    name: (int(flat), int(cumulative))
    for name, flat, cumulative in ask(
        "SELECT function, sum(flat), sum(cumulative) FROM functions_by_hour WHERE "
        f"service = 'shop' AND type = '{kind}' GROUP BY function"
    )
}
wrong = {name: (want.get(name), got.get(name)) for name in want | got if want.get(name) != got.get(name)}
if wrong:
    sys.exit(f"functions_by_hour differs: {dict(list(wrong.items())[:10])}")
