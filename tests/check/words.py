#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""words.py ROOT: fails on vocabulary that this project replaced by plain technical English.

Checks the text that users read: string literals of the C sources, man pages, documentation, the
descriptions in docs/openapi.json, and the texts of the web page. Comments are not checked.
"""

import json
import pathlib
import re
import sys

# Expression, and the wording to use instead.
WORDS = [
    (r"\bfolders?\b", "directory"),
    (r"\bdearest\b", "most expensive"),
    (r"\bhousekeeping\b|\bkeeping house\b", "maintenance"),
    (r"\bin vain\b", "not found"),
    (r"\bof before\b", "existing or previous"),
    (r"\b(is|are) told\b|\btold otherwise\b|\btells? more\b", "active voice: 'the server sends ...'"),
    (r"\b(come|came) (again|back)\b", "retry"),
    (r"\b(could|can|to|cannot)( not)? be had\b", "failed to allocate, not available"),
    (r"(?<!there )\bis no (?!longer\b|more\b|better\b)", "is not a"),
    (r"(?<!there )\bare no (?!longer\b|more\b|better\b)", "are not"),
    (r"(?<!if it )\bhas none\b", "has no X"),
    (r"(?<!there )(?<!they )\bwants (a|an|the|one|two|both|left|query|--)", "requires"),
    (r"\bmay be(?=\.|;|\"|$)", "the limit is"),
    (r"\bthan (it|they|there|one) may\b", "exceeds the limit"),
    (r"\bcan't be(?=\.|;|\"|$)", "invalid"),
    (r"\bin no format\b", "unrecognised format"),
    (r"\bis answered with\b|\bare answered with\b", "gets STATUS"),
    (r"\bturned away\b", "rejected"),
    (r"\bby (some|any|which|what) means\b", "backend"),
    (r"\bmade-up\b", "simulated"),
    (r"\bshares of the total\b", "% of total"),
    (r"\bunless (given|told)\b", "default: X"),
    (r"\bwhoever\b", "every user, the sender, ..."),
    (r"\b(some|no|any|every)body\b", "name the actor"),
    (r"\bas far as (it|they) goe?s?\b", "up to there, that much"),
    # A headless relative with a verb after it: "What was written is kept".
    (r"(?:^|[.;] |\| )(?:What|Who|Which)\b[^.?:;|]*\b(?:was|were|remains|knows?|has|had|costs?|does|did)\b[^.?:;|]*"
     r"\b(?:is|are|isn't|aren't|counts|becomes)\b(?! worth)[^?:|]*[a-z](?:\.|;|$)", "name the thing"),
    (r"\bwhat (is|was|there) (known|there|is|lost|left)\b", "name the thing"),
    (r"\bsays? (so|why|otherwise)\b", "reports"),
    (r"\bthat folder\b|\bthis is no\b|\bthere is no such\b", "not a, unknown, not found"),
    (r"\bno random numbers\b", "getrandom() failed"),
    (r"\bis another now\b", "changed; restart to apply it"),
    (r"\bcut off\b", "truncated"),
]
RULES = [(re.compile(expression, re.I), instead) for expression, instead in WORDS]

C_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)  # fmt: skip
# A template or regular expression in the page can hold quotes; both are rare enough to be skipped.
TS_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`", re.S)  # fmt: skip
JSX_TEXT = re.compile(r">([^<>{}=;]*[a-z][^<>{}=;]*)<")


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def literals(text, token, quotes):
    """String literals of C or TypeScript; adjacent ones are one text."""
    joined, start, end = "", 0, -1
    for match in token.finditer(text):
        if match.group()[0] not in quotes:
            continue
        if joined and text[end : match.start()].strip() == "":
            joined += match.group()[1:-1]
        else:
            if joined:
                yield start, joined
            joined, start = match.group()[1:-1], match.start()
        end = match.end()
    if joined:
        yield start, joined


def descriptions(value):
    """The strings of a JSON document that people read."""
    if isinstance(value, dict):
        for key, entry in value.items():
            if key in ("description", "summary", "title") and isinstance(entry, str):
                yield entry
            else:
                yield from descriptions(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from descriptions(entry)


def texts(path):
    """Pairs of line number and user-visible text in a file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".c", ".h"):
        for offset, literal in literals(text, C_TOKEN, '"'):
            if " " in literal:  # others are names, of threads for example
                yield line_of(text, offset), literal
    elif path.suffix in (".ts", ".tsx"):
        for offset, literal in literals(text, TS_TOKEN, "\"'`"):
            yield line_of(text, offset), literal
        bare = re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)
        for match in JSX_TEXT.finditer(bare):
            yield line_of(text, match.start()), match.group(1)
    elif path.suffix == ".json":
        for entry in descriptions(json.loads(text)):
            yield 0, entry
    else:  # man pages, Markdown, HTML
        for number, line in enumerate(text.split("\n"), 1):
            if not line.startswith('.\\"'):
                yield number, line


def files(root):
    for pattern in ("src/**/*.[ch]", "man/*.1", "docs/**/*.md", "docs/openapi.json", "README.md",
                    "ARCHITECTURE.md", "CONTRIBUTING.md", "web/ui/**/*.ts*", "web/flame/**/*.ts",
                    "web/**/*.html"):  # fmt: skip
        for path in sorted(root.glob(pattern)):
            if "node_modules" not in path.parts and "dist" not in path.parts:
                yield path


def main():
    root = pathlib.Path(sys.argv[1])
    failures = checked = 0
    for path in files(root):
        for number, text in texts(path):
            checked += 1
            for expression, instead in RULES:
                match = expression.search(text)
                if match:
                    failures += 1
                    print(f'{path.relative_to(root)}:{number}: "{match.group()}": write: {instead}')
    if not checked:
        sys.exit("words.py found no text to check.")
    if failures:
        sys.exit(f"{failures} texts use replaced vocabulary.")
    print(f"{checked} texts checked.")


if __name__ == "__main__":
    main()
