#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""openapi_page.py INPUT OUTPUT: the API's document as a page for people. It has no scripts and
takes nothing from anywhere else, so that it can be served under the strictest policy there is."""

import html
import json
import pathlib
import sys

STYLE = """body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:60em;padding:0 1em;
color:#222;background:#fff}code{font:13px ui-monospace,monospace;overflow-wrap:anywhere}
h2{margin-top:2em}h3{margin:1.6em 0 .2em}table{border-collapse:collapse;width:100%}
td{padding:.15em .8em .15em 0;vertical-align:top;border-top:1px solid #ddd}
.role{color:#666;font-weight:normal;font-size:13px}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181a1b}td{border-color:#444}
.role{color:#999}a{color:#8ab4f8}}"""


def resolve(document, part):
    while "$ref" in part:
        target = document
        for key in part["$ref"].lstrip("#/").split("/"):
            target = target[key]
        part = target
    return part


def describe(schema):
    schema = dict(schema)
    if schema.get("type") == "array":
        return "any number of times"
    if "enum" in schema:
        return ", ".join(schema["enum"])
    return ""


def operation(document, method, path, what):
    text = html.escape
    rows = []
    for given in what.get("parameters", []):
        parameter = resolve(document, given)
        name = text(parameter["name"])
        where = "" if parameter["in"] == "query" else f" ({parameter['in']})"
        needed = ", needed" if parameter.get("required") else ""
        about = [parameter.get("description", ""), describe(parameter.get("schema", {}))]
        rows.append(
            f"<tr><td><code>{name}</code>{where}{needed}</td>"
            f"<td>{text(' '.join(part for part in about if part))}</td></tr>"
        )
    others = what.get("x-other-parameters")
    if others:
        rows.append(f"<tr><td>others</td><td>are {text(others)}</td></tr>")
    codes = " ".join(what["responses"])
    return (
        f"<h3><code>{method.upper()} {text(path)}</code> "
        f"<span class=role>role: {text(what['x-role'])}</span></h3>"
        f"<p>{text(what['summary'])}. {text(what.get('description', ''))}</p>"
        f"<table>{''.join(rows)}<tr><td>answers</td><td>{text(codes)}</td></tr></table>\n"
    )


def main():
    source, output = sys.argv[1:]
    document = json.loads(pathlib.Path(source).read_text())
    groups = {}
    for path, methods in document["paths"].items():
        for method, what in methods.items():
            groups.setdefault(what["tags"][0], []).append(
                operation(document, method, path, what)
            )
    info = document["info"]
    parts = "".join(
        f"<h2>{html.escape(name.capitalize())}</h2>\n{''.join(operations)}"
        for name, operations in groups.items()
    )
    pathlib.Path(output).write_text(
        "<!DOCTYPE html>\n<html lang=en><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width">'
        f"<title>{html.escape(info['title'])}</title><style>{STYLE}</style>\n"
        f"<h1>{html.escape(info['title'])}</h1><p>{html.escape(info['description'])}</p>"
        '<p>The whole document: <a href="/api/v1/openapi.json">openapi.json</a></p>\n' + parts
    )


main()
