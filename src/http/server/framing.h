/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a connection before libmicrohttpd parses them: where heads, bodies and chunks begin
 * and end by the strict rules of HTTP/1.1 (RFC 9112). The library accepts bare LF as the end of
 * lines of chunks and trailers, NULs, folded trailers, and skips lines that begin with a NUL; a
 * proxy in front of it may read the same bytes differently. Pure logic, one connection each.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum framing_state {
    FRAMING_START, /* of a request, or the empty line before it */
    FRAMING_START_LF,
    FRAMING_LINE, /* the request line */
    FRAMING_LINE_LF,
    FRAMING_HEADER,
    FRAMING_NAME,
    FRAMING_VALUE,
    FRAMING_VALUE_LF,
    FRAMING_HEAD_LF,
    FRAMING_BODY,
    FRAMING_SIZE, /* of a chunk */
    FRAMING_EXTENSION,
    FRAMING_SIZE_LF,
    FRAMING_CHUNK,
    FRAMING_CHUNK_CR,
    FRAMING_CHUNK_LF,
    FRAMING_TRAILER,
    FRAMING_TRAILER_LINE,
    FRAMING_TRAILER_LF,
    FRAMING_TRAILERS_LF,
    FRAMING_REFUSED, /* behind a head that is refused: the connection ends with it */
    FRAMING_BROKEN,  /* the body's framing is invalid, and so is all that follows */
};

#define FRAMING_NAME_BYTES 18

struct framing {
    enum framing_state state;
    uint64_t heads; /* valid ones that have ended; all that come later are to be refused */
    bool bad_head;  /* the one that is coming, or the last one */
    bool chunked, has_length, empty_line;
    bool empty_length;             /* a length without digits came */
    char last;                     /* byte of the request line */
    char name[FRAMING_NAME_BYTES]; /* of the header, in lower case; what doesn't fit is cut off */
    size_t name_length;
    uint64_t left; /* of the body, or of the chunk */
    unsigned digits;
    unsigned replaced; /* bytes since the body's framing broke */
};

/* Follows `length` new bytes in a buffer of `room`. Where a body's framing is invalid, it replaces
 * the rest by bytes that no parser accepts, and adds some if there is room. It renames Cookie
 * headers, which nobody reads, so that the library doesn't take them apart, and removes extensions
 * of chunks, which libmicrohttpd 1.0.0 refuses. Returns how many bytes there are now, which may be
 * none. */
size_t framing_pass(struct framing *framing, char *data, size_t length, size_t room);
