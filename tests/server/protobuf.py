# SPDX-License-Identifier: Apache-2.0
"""Protobuf messages, for tests that make profiles and requests by hand."""


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, content):
    """A number, a text, or bytes, which may be a message."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    if isinstance(content, str):
        content = content.encode()
    return varint(number << 3 | 2) + varint(len(content)) + content
