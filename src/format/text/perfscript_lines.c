// SPDX-License-Identifier: Apache-2.0
// The grammar of `perf script` output, line by line. The columns are what perf 3 to 6 print by
// default or with the fields that people add and remove; see docs/formats/perf-script.md.

#include <string.h>

#include "base/hex.h"
#include "base/text.h"
#include "format/text/perfscript.h"

/* Command names have at most 15 bytes; some slack for longer ones that users of prctl never see. */
#define COMM_BYTES_MAX 256

struct cursor {
    const char *at, *end;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f');
}

/* The next word; empty at the end of the line. */
static struct perf_text next_word(struct cursor *cursor)
{
    while (cursor->at < cursor->end && is_blank(*cursor->at))
        cursor->at++;
    struct perf_text word = {.at = cursor->at};
    while (cursor->at < cursor->end && !is_blank(*cursor->at))
        cursor->at++;
    word.length = (size_t)(cursor->at - word.at);
    return word;
}

static struct perf_text rest_of(struct cursor cursor)
{
    while (cursor.at < cursor.end && is_blank(*cursor.at))
        cursor.at++;
    while (cursor.end > cursor.at && is_blank(cursor.end[-1]))
        cursor.end--;
    return (struct perf_text){.at = cursor.at, .length = (size_t)(cursor.end - cursor.at)};
}

static bool ends_in_colon(struct perf_text word)
{
    return word.length > 1 && word.at[word.length - 1] == ':';
}

/* "1234" or "1234/1235"; perf prints -1 for what it does not know. */
static bool parse_ids(struct perf_text word, struct perf_header *header)
{
    const char *slash = memchr(word.at, '/', word.length);
    header->pid = -1;
    if (!slash)
        return text_to_i64(word.at, word.length, &header->tid);
    size_t before = (size_t)(slash - word.at);
    return text_to_i64(word.at, before, &header->pid) &&
           text_to_i64(slash + 1, word.length - before - 1, &header->tid);
}

/* "[003]" */
static bool is_cpu(struct perf_text word)
{
    if (word.length < 3 || word.at[0] != '[' || word.at[word.length - 1] != ']')
        return false;
    for (size_t i = 1; i < word.length - 1; i++)
        if (!is_digit(word.at[i]))
            return false;
    return true;
}

/* "K", "UH": the field `misc`. */
static bool is_flags(struct perf_text word)
{
    for (size_t i = 0; i < word.length; i++)
        if (word.at[i] < 'A' || word.at[i] > 'Z')
            return false;
    return word.length && word.length <= 8;
}

/* "1463.506549:" with six or nine digits after the point, in seconds. */
static bool parse_time(struct perf_text word, uint64_t *ret_time_ns)
{
    const char *point = memchr(word.at, '.', word.length);
    if (!point || !ends_in_colon(word))
        return false;
    size_t whole = (size_t)(point - word.at);
    size_t digits = word.length - whole - 2;
    uint64_t seconds, fraction, time_ns;
    if (!digits || digits > 9 || !text_to_u64(word.at, whole, &seconds) ||
        !text_to_u64(point + 1, digits, &fraction))
        return false;
    for (; digits < 9; digits++)
        fraction *= 10;
    if (__builtin_mul_overflow(seconds, 1000000000u, &time_ns) ||
        __builtin_add_overflow(time_ns, fraction, &time_ns))
        return false;
    *ret_time_ns = time_ns;
    return true;
}

static bool is_time(struct perf_text word)
{
    uint64_t time_ns;
    return parse_time(word, &time_ns);
}

/* Names of events begin with a letter; a number there is a time or a frame out of shape. */
static bool is_event(struct perf_text word)
{
    return ends_in_colon(word) && !is_digit(word.at[0]) && word.at[0] != '.';
}

/* As perf prints it: hexadecimal without a prefix. */
static bool is_address(struct perf_text word)
{
    for (size_t i = 0; i < word.length; i++)
        if (!is_hex(word.at[i]))
            return false;
    return word.length && word.length <= 16;
}

static bool is_record(struct perf_text text)
{
    static const char prefix[] = "PERF_RECORD_";
    return text.length >= sizeof(prefix) - 1 && !memcmp(text.at, prefix, sizeof(prefix) - 1);
}

/* The part after process and thread. At least a time or an event must be there: without either,
 * any line with a number in it would be a header. */
static bool parse_after_ids(struct cursor cursor, struct perf_header *header)
{
    struct cursor before = cursor;
    struct perf_text word = next_word(&cursor);
    if (is_cpu(word)) {
        before = cursor;
        word = next_word(&cursor);
    }
    struct cursor after_flags = cursor;
    if (is_flags(word) && is_time(next_word(&after_flags))) {
        before = cursor;
        word = next_word(&cursor);
    }
    if (parse_time(word, &header->time_ns)) {
        header->has_time = true;
        before = cursor;
        word = next_word(&cursor);
    }
    if (header->has_time && is_record(word)) {
        header->is_record = true;
        return true;
    }
    struct cursor after_period = cursor;
    struct perf_text next = next_word(&after_period);
    /* Without an event, a number alone or before an address is a period all the same. */
    if ((is_event(next) || !next.length || is_address(next)) &&
        text_to_u64(word.at, word.length, &header->period)) {
        header->has_period = true;
        before = cursor;
        cursor = after_period;
        word = next;
    }
    if (is_event(word)) {
        header->event = (struct perf_text){.at = word.at, .length = word.length - 1};
        before = cursor;
    }
    header->rest = rest_of(before);
    return header->has_time || header->event.length;
}

bool perf_parse_header(const char *line, size_t length, struct perf_header *ret_header)
{
    struct cursor cursor = {.at = line, .end = line + length};
    struct perf_text first = next_word(&cursor);
    if (!first.length)
        return false;
    /* Command names hold spaces and numbers of their own: the process is the first number after
     * which the rest of the line makes sense. */
    for (;;) {
        const char *comm_end = cursor.at;
        struct perf_text word = next_word(&cursor);
        if (!word.length || word.at - first.at > COMM_BYTES_MAX || is_time(word))
            return false;
        struct perf_header header = {
            .comm = {.at = first.at, .length = (size_t)(comm_end - first.at)}};
        if (!parse_ids(word, &header) || !parse_after_ids(cursor, &header))
            continue;
        /* perf's own comments begin with a hash and have no such time in them. */
        if (first.at[0] == '#' && !header.has_time)
            return false;
        *ret_header = header;
        return true;
    }
}

static uint64_t parse_hex(struct perf_text digits)
{
    uint64_t value = 0;
    for (size_t i = 0; i < digits.length; i++)
        value = value << 4 | (uint64_t)hex_digit(digits.at[i]);
    return value;
}

/* Cuts "+0x1f" off the end; false when it is not there. */
static bool cut_offset(struct perf_text *text, uint64_t *ret_offset)
{
    if (!text->length)
        return false;
    size_t start = text->length;
    while (start && is_hex(text->at[start - 1]))
        start--;
    struct perf_text digits = {.at = text->at + start, .length = text->length - start};
    if (!is_address(digits) || start < 4 || memcmp(text->at + start - 3, "+0x", 3))
        return false;
    *ret_offset = parse_hex(digits);
    text->length = start - 3;
    return true;
}

/* Where the last "(...)" of the text begins, which may itself hold "(deleted)"; or its length. */
static size_t last_parenthesis(struct perf_text text)
{
    if (!text.length || text.at[text.length - 1] != ')')
        return text.length;
    size_t depth = 0, latest = text.length;
    for (size_t i = text.length; i-- > 0;) {
        bool opens = text.at[i] == '(' && (!i || is_blank(text.at[i - 1]));
        if (text.at[i] == ')')
            depth++;
        else if (text.at[i] == '(')
            depth -= depth > 0;
        if (opens && latest == text.length)
            latest = i;
        if (opens && !depth)
            return i;
    }
    return latest;
}

static bool equals(struct perf_text text, const char *word)
{
    return text.length == strlen(word) && !memcmp(text.at, word, text.length);
}

bool perf_parse_frame(const char *line, size_t length, struct perf_frame *ret_frame)
{
    struct cursor cursor = {.at = line, .end = line + length};
    struct perf_text word = next_word(&cursor);
    if (!is_address(word))
        return false;
    struct perf_frame frame = {.address = parse_hex(word)};
    struct perf_text rest = rest_of(cursor);
    size_t open = last_parenthesis(rest);
    if (open < rest.length) {
        frame.file = (struct perf_text){.at = rest.at + open + 1, .length = rest.length - open - 2};
        rest = rest_of((struct cursor){.at = rest.at, .end = rest.at + open});
    }
    uint64_t offset;
    if (equals(frame.file, "inlined")) {
        frame.inlined = true;
        frame.file.length = 0;
    } else if (equals(frame.file, "[unknown]")) {
        frame.file.length = 0;
    } else if (cut_offset(&frame.file, &offset)) {
        frame.address = offset; /* -F +dsoff: the same in every run */
    }
    cut_offset(&rest, &offset);
    if (!equals(rest, "[unknown]"))
        frame.symbol = rest;
    *ret_frame = frame;
    return true;
}

/* "[kernel.kallsyms][ffffffff81000130]": what stands there when the line is not known. */
static bool is_unknown_line(struct perf_text text)
{
    const char *open = memrchr(text.at, '[', text.length);
    if (!open || text.length < 3 || text.at[text.length - 1] != ']')
        return false;
    const char *end = text.at + text.length - 1;
    for (const char *at = open + 1; at < end; at++)
        if (!is_hex(*at))
            return false;
    return end > open + 1;
}

bool perf_parse_source_line(const char *line, size_t length, struct perf_text *ret_file,
                            uint32_t *ret_line)
{
    struct perf_text text = rest_of((struct cursor){.at = line, .end = line + length});
    if (is_unknown_line(text)) {
        *ret_file = (struct perf_text){.at = text.at};
        *ret_line = 0;
        return true;
    }
    const char *colon = memrchr(text.at, ':', text.length);
    if (!colon || colon == text.at)
        return false;
    uint64_t number;
    size_t before = (size_t)(colon - text.at);
    if (!text_to_u64(colon + 1, text.length - before - 1, &number) || number > UINT32_MAX)
        return false;
    bool unknown = !number || (before == 2 && !memcmp(text.at, "??", 2));
    *ret_file = (struct perf_text){.at = text.at, .length = unknown ? 0 : before};
    *ret_line = unknown ? 0 : (uint32_t)number;
    return true;
}

struct perf_event perf_parse_event(struct perf_text event)
{
    struct perf_event result = {.name = event};
    if (!event.length)
        return result;
    /* Modifiers follow a colon, or the closing slash of an event of a named PMU. */
    size_t end = event.length;
    while (end && memchr("ukhIGHpPSDWR", event.at[end - 1], 12))
        end--;
    if (end > 1 && end < event.length && event.at[end - 1] == ':')
        result.name.length = end - 1;
    else if (end > 1 && end < event.length && event.at[end - 1] == '/')
        result.name.length = end;
    else if (end > 1 && end == event.length && event.at[end - 1] == ':')
        result.name.length = end - 1;
    result.is_clock = equals(result.name, "cpu-clock") || equals(result.name, "task-clock");
    result.is_tracepoint = memchr(result.name.at, ':', result.name.length) &&
                           !memchr(result.name.at, '/', result.name.length);
    return result;
}
