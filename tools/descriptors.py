#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns .proto files into C: descriptors.py HEADER OUTPUT FILE... writes a source file that defines
`descriptor_files`, as HEADER declares it: a FileDescriptorProto of each file, in the order of their
dependencies, and the names in it. It reads the subset of proto3 that docs/proto uses: messages,
enums, oneofs, optional fields, services and imports; types by their full names or by names of the
same file."""

import pathlib
import re
import sys

SCALARS = {"double": 1, "int64": 3, "uint64": 4, "int32": 5, "fixed64": 6, "bool": 8, "string": 9,
           "bytes": 12, "uint32": 13}
TYPE_MESSAGE, TYPE_ENUM = 11, 14
TOKEN = re.compile(r'\s+|//[^\n]*|("[^"]*"|[A-Za-z0-9_.]+|[{}()=;])')


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def field(number, content):
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    content = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(content)) + content


def camel(name):
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


class Parser:
    def __init__(self, path):
        self.path, text, self.tokens, at = path, path.read_text(), [], 0
        while at < len(text):
            match = TOKEN.match(text, at)
            if not match:
                sys.exit(f"{path}: unexpected text at {text[at:at + 20]!r}")
            if match.group(1):
                self.tokens.append(match.group(1))
            at = match.end()
        self.package, self.imports, self.services = "", [], []
        self.messages, self.enums = [], []
        self.kinds = {}  # full name: message or enum
        while self.tokens:
            self.statement()

    def take(self, *wanted):
        token = self.tokens.pop(0)
        if wanted and token not in wanted:
            sys.exit(f"{self.path}: expected {wanted}, got {token!r}")
        return token

    def statement(self):
        word = self.take()
        if word == "syntax":
            self.take("="), self.take('"proto3"'), self.take(";")
        elif word == "package":
            self.package = self.take()
            self.take(";")
        elif word == "import":
            self.imports.append(self.take().strip('"'))
            self.take(";")
        elif word == "message":
            self.messages.append(self.message(self.package))
        elif word == "enum":
            self.enums.append(self.enum(self.package))
        elif word == "service":
            self.services.append(self.service())
        else:
            sys.exit(f"{self.path}: unknown statement {word!r}")

    def enum(self, scope):
        name, values = self.take(), []
        self.kinds[f"{scope}.{name}"] = TYPE_ENUM
        self.take("{")
        while (value := self.take()) != "}":
            self.take("=")
            values.append((value, int(self.take())))
            self.take(";")
        return name, values

    def message(self, scope):
        name = self.take()
        full = f"{scope}.{name}"
        self.kinds[full] = TYPE_MESSAGE
        fields, enums, oneofs, oneof = [], [], [], None
        self.take("{")
        while True:
            word = self.take()
            if word == "}":
                if oneof is None:
                    break
                oneof = None
            elif word == "enum":
                enums.append(self.enum(full))
            elif word == "oneof":
                oneof = len(oneofs)
                oneofs.append(self.take())
                self.take("{")
            else:
                label = word if word in ("repeated", "optional") else None
                kind = self.take() if label else word
                fields.append([self.take(), kind, label, oneof])
                self.take("=")
                fields[-1].append(int(self.take()))
                self.take(";")
        return name, full, fields, enums, oneofs

    def service(self):
        name, methods = self.take(), []
        self.take("{")
        while self.take("rpc", "}") == "rpc":
            method, sides = self.take(), []
            for _ in range(2):
                self.take("(")
                word = self.take()
                sides.append((self.take() if word == "stream" else word, word == "stream"))
                self.take(")")
                if len(sides) == 1:
                    self.take("returns")
            self.take(";")
            methods.append((method, sides))
        return name, methods


def resolve(parser, kinds, name, scope):
    """Of the message itself, of the file, or a full name."""
    for full in (f"{scope}.{name}", f"{parser.package}.{name}", name):
        if full in kinds:
            return full
    sys.exit(f"{parser.path}: unknown type {name!r}")


def put_enum(enum):
    name, values = enum
    return field(1, name) + b"".join(field(2, field(1, n) + field(2, v)) for n, v in values)


def put_message(parser, kinds, message):
    name, full, fields, enums, oneofs = message
    out, oneofs = field(1, name), list(oneofs)
    for member, kind, label, oneof, number in fields:
        one = field(1, member) + field(3, number) + field(4, 3 if label == "repeated" else 1)
        if kind in SCALARS:
            one += field(5, SCALARS[kind])
        else:
            target = resolve(parser, kinds, kind, full)
            one += field(5, kinds[target]) + field(6, "." + target)
        if label == "optional":
            oneof = len(oneofs)
            oneofs.append("_" + member)
        if oneof is not None:
            one += field(9, oneof)
        one += field(10, camel(member))
        if label == "optional":
            one += field(17, 1)
        out += field(2, one)
    out += b"".join(field(4, put_enum(enum)) for enum in enums)
    return out + b"".join(field(8, field(1, oneof)) for oneof in oneofs)


def put_service(parser, kinds, service):
    name, methods = service
    out = field(1, name)
    for method, ((request, streams_in), (answer, streams_out)) in methods:
        one = field(1, method)
        one += field(2, "." + resolve(parser, kinds, request, parser.package))
        one += field(3, "." + resolve(parser, kinds, answer, parser.package))
        one += (field(5, 1) if streams_in else b"") + (field(6, 1) if streams_out else b"")
        out += field(2, one)
    return out


def put_file(parser, kinds):
    out = field(1, parser.path.name) + field(2, parser.package)
    out += b"".join(field(3, name) for name in parser.imports)
    out += b"".join(field(4, put_message(parser, kinds, m)) for m in parser.messages)
    out += b"".join(field(5, put_enum(e)) for e in parser.enums)
    out += b"".join(field(6, put_service(parser, kinds, s)) for s in parser.services)
    return out + field(12, "proto3")


def names_of(parser):
    for full in parser.kinds:
        yield full
    for name, methods in parser.services:
        yield f"{parser.package}.{name}"
        for method, _ in methods:
            yield f"{parser.package}.{name}.{method}"


def main():
    header, output, *paths = sys.argv[1:]
    parsers = {pathlib.Path(path).name: Parser(pathlib.Path(path)) for path in sorted(paths)}
    kinds, order = {}, []
    for parser in parsers.values():
        kinds.update(parser.kinds)

    def visit(name):
        if name not in order:
            for other in parsers[name].imports:
                visit(other)
            order.append(name)

    for name in parsers:
        visit(name)
    out = [f'#include "{header}"\n']
    rows = []
    for i, name in enumerate(order):
        parser = parsers[name]
        data = put_file(parser, kinds)
        out.append(f"static const unsigned char bytes_{i}[] = {{{','.join(map(str, data))}}};")
        needed = []

        def add(other):
            for one in parsers[other].imports:
                if order.index(one) not in needed:
                    needed.append(order.index(one))
                    add(one)

        add(name)
        quoted = ",".join(f'"{n}"' for n in names_of(parser))
        services = "".join(f'"{parser.package}.{s}",' for s, _ in parser.services)
        out.append(f"static const char *const names_{i}[] = {{{quoted},0}};")
        out.append(f"static const char *const services_{i}[] = {{{services}0}};")
        out.append(f"static const unsigned char needs_{i}[] = {{{','.join(map(str, needed + [255]))}}};")
        rows.append(f'{{"{name}", bytes_{i}, sizeof(bytes_{i}), names_{i}, services_{i}, needs_{i}}}')
    out.append("const struct descriptor_file descriptor_files[] = {\n    " + ",\n    ".join(rows) + ",\n};")
    out.append(f"const unsigned long descriptor_file_count = {len(rows)};")
    pathlib.Path(output).write_text("\n".join(out) + "\n")


main()
