// SPDX-License-Identifier: Apache-2.0
// The text profiles that pprof has read since before its protobuf: heap profiles of gperftools
// (tcmalloc) and of Go's debug=1, growth and fragmentation, mutex contention, Go's counts
// (goroutine, threadcreate), and the heap and contention profiles of Java agents. Each is a header,
// a line per stack, and perhaps symbols and a memory map. See gperftools.h.

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "format/format.h"
#include "format/gperftools/gperftools.h"

/* Java agents sample an object per 512 KiB and don't say so. */
#define JAVA_HEAP_PERIOD 524288

enum text_kind {
    TEXT_NONE,
    TEXT_HEAP,
    TEXT_GROWTH,
    TEXT_CONTENTION,
    TEXT_COUNT,
    TEXT_JAVA_HEAP,
    TEXT_THREADS
};

enum staged_type {
    STAGED_FIRST,
    STAGED_SECOND,
    STAGED_ALLOC_COUNT,
    STAGED_ALLOC_SIZE,
    STAGED_TYPES
};

struct text_profile {
    struct gperftools reader;
    enum text_kind kind;
    bool has_alloc;   /* heap: what was freed is counted, too */
    bool unbias;      /* heap: counts are of samples taken every `period` bytes */
    int64_t period;   /* heap: bytes; contention: one of so many */
    int64_t clock_hz; /* contention: of the delays; 0: nanoseconds */
    int64_t duration_ns;
    char name[64];      /* count and threads: what is counted */
    bool in_thread;     /* threads: its stack is being read */
    bool same_stack;    /* threads: it has the stack of the one before */
    uint32_t last_node; /* threads: staged node of the one before; 0: none */
    char unit[32];      /* Java: of the second value */
    uint32_t bytes_key; /* staged string */
};

struct line {
    const char *text;
    size_t length;
};

static void skip(struct line *line, size_t count)
{
    line->text += count;
    line->length -= count;
}

static void trim(struct line *line)
{
    while (line->length && isspace((unsigned char)*line->text))
        skip(line, 1);
    while (line->length && isspace((unsigned char)line->text[line->length - 1]))
        line->length--;
}

static bool starts_with(const struct line *line, const char *prefix)
{
    size_t length = strlen(prefix);
    return line->length >= length && !memcmp(line->text, prefix, length);
}

static bool contains(const struct line *line, const char *text)
{
    return memmem(line->text, line->length, text, strlen(text));
}

/* The character, after any white space. */
static bool take_char(struct line *line, char c)
{
    while (line->length && isspace((unsigned char)*line->text))
        skip(line, 1);
    if (!line->length || *line->text != c)
        return false;
    skip(line, 1);
    return true;
}

static bool take_number(struct line *line, int64_t *ret_number)
{
    while (line->length && isspace((unsigned char)*line->text))
        skip(line, 1);
    size_t length = line->length && *line->text == '-';
    while (length < line->length && isdigit((unsigned char)line->text[length]))
        length++;
    if (!text_to_i64(line->text, length, ret_number))
        return false;
    skip(line, length);
    return true;
}

/* "1: 1024 [2: 2048] @": of which the part in brackets is what was ever allocated. */
static bool take_heap_numbers(struct line *line, int64_t numbers[4])
{
    return take_number(line, &numbers[0]) && take_char(line, ':') &&
           take_number(line, &numbers[1]) && take_char(line, '[') &&
           take_number(line, &numbers[2]) && take_char(line, ':') &&
           take_number(line, &numbers[3]) && take_char(line, ']') && take_char(line, '@');
}

/* ---- headers ---- */

static bool is_map_header(const struct line *line)
{
    return contains(line, "MAPPED_LIBRARIES:") || contains(line, "--- Memory map: ---");
}

/* "heap profile: 1: 1024 [2: 2048] @ heap_v2/524288". */
static bool parse_heap_header(struct text_profile *text, struct line line)
{
    static const struct {
        const char *name;
        bool growth, unbias;
        int divisor; /* of the number after the slash; 0: the period is 1 */
    } kinds[] = {
        {"heapz_v2", false, true, 1},
        {"heap_v2", false, true, 1},
        {"heapprofile", false, false, 0},
        /* Go writes twice its sampling rate. */
        {"heap", false, true, 2},
        {"growthz", true, false, 0},
        {"growth", true, false, 0},
        {"fragmentationz", true, false, 0},
        {"fragmentation", true, false, 0},
    };
    int64_t numbers[4];
    if (!starts_with(&line, "heap profile:"))
        return false;
    skip(&line, strlen("heap profile:"));
    if (!take_heap_numbers(&line, numbers))
        return false;
    trim(&line);
    size_t length = 0;
    while (length < line.length && line.text[length] != '/' &&
           !isspace((unsigned char)line.text[length]))
        length++;
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
        if (strlen(kinds[i].name) != length || memcmp(kinds[i].name, line.text, length))
            continue;
        int64_t period = 0;
        skip(&line, length);
        if (take_char(&line, '/'))
            take_number(&line, &period);
        text->kind = kinds[i].growth ? TEXT_GROWTH : TEXT_HEAP;
        text->unbias = kinds[i].unbias;
        text->period = kinds[i].divisor ? period / kinds[i].divisor : 1;
        text->has_alloc = !kinds[i].growth && ((numbers[2] && numbers[2] != numbers[0]) ||
                                               (numbers[3] && numbers[3] != numbers[1]));
        return true;
    }
    return false;
}

/* "goroutine profile: total 12". */
static bool parse_count_header(struct text_profile *text, struct line line)
{
    static const char marker[] = " profile: total ";
    int64_t total;
    const char *found = memmem(line.text, line.length, marker, strlen(marker));
    size_t length = found ? (size_t)(found - line.text) : 0;
    if (!length || length >= sizeof(text->name))
        return false;
    for (size_t i = 0; i < length; i++)
        if (isspace((unsigned char)line.text[i]))
            return false;
    memcpy(text->name, line.text, length);
    skip(&line, length + strlen(marker));
    if (!take_number(&line, &total) || line.length)
        return false;
    text->kind = TEXT_COUNT;
    text->period = 1;
    return true;
}

/* "--- Thread 7f09c3a1 (name: main/123) stack: ---". */
static bool is_thread_header(const struct line *line)
{
    return starts_with(line, "--- Thread ") && contains(line, " (name: ") &&
           contains(line, ") stack: ---");
}

static enum text_kind parse_header(struct text_profile *text, struct line line)
{
    if (parse_heap_header(text, line) || parse_count_header(text, line))
        return text->kind;
    if (starts_with(&line, "--- threadz ") || is_thread_header(&line)) {
        text->kind = TEXT_THREADS;
        text->period = 1;
        text->in_thread = is_thread_header(&line);
        strcpy(text->name, "thread");
    }
    if (starts_with(&line, "--- heapz ")) {
        text->kind = TEXT_JAVA_HEAP;
        text->period = JAVA_HEAP_PERIOD;
        text->unbias = true;
    } else if (starts_with(&line, "--- contentionz ") || starts_with(&line, "--- mutex:") ||
               starts_with(&line, "--- contention:")) {
        text->kind = TEXT_CONTENTION;
        text->period = 1;
    }
    return text->kind;
}

/* "sampling period = 100": false when the line is no such attribute. */
static bool parse_attribute(struct text_profile *text, struct line line)
{
    const char *equals = memchr(line.text, '=', line.length);
    if (!equals)
        return false;
    struct line key = {line.text, (size_t)(equals - line.text)};
    struct line value = {equals + 1, line.length - key.length - 1};
    int64_t number = 0;
    trim(&key);
    trim(&value);
    struct line digits = value;
    bool is_number = take_number(&digits, &number) && number > 0;
    if (starts_with(&key, "cycles/second") && is_number) {
        text->clock_hz = number;
    } else if (starts_with(&key, "sampling period") && is_number) {
        text->period = number;
    } else if (starts_with(&key, "ms since reset") && is_number) {
        if (__builtin_mul_overflow(number, 1000000, &text->duration_ns))
            text->duration_ns = 0;
    } else if (starts_with(&key, "format")) {
        text->reader.java = starts_with(&value, "java");
    } else if (starts_with(&key, "resolution") && value.length < sizeof(text->unit)) {
        memcpy(text->unit, value.text, value.length);
        text->unit[value.length] = '\0';
    }
    return true;
}

/* ---- samples ---- */

static int64_t to_integer(double value)
{
    if (!(value > -9.2e18 && value < 9.2e18))
        return value < 0 ? INT64_MIN : INT64_MAX;
    return (int64_t)value;
}

static int64_t multiply(int64_t a, int64_t b)
{
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
    return product;
}

/* A block of size s is sampled with the probability 1 - exp(-s / period). */
static void unbias(int64_t *count, int64_t *size, int64_t period)
{
    if (!*count || !*size) {
        *count = *size = 0;
    } else if (period > 1) {
        double average = (double)*size / (double)*count;
        double scale = 1 / (1 - exp(-average / (double)period));
        if (isfinite(scale)) {
            *count = to_integer((double)*count * scale);
            *size = to_integer((double)*size * scale);
        }
    }
}

static int malformed(const struct text_profile *text, struct error *error)
{
    return error_set(error, -EBADMSG, "Line %llu is not a sample of such a profile.",
                     (unsigned long long)text->reader.line);
}

/* Size of the sampled blocks, before they are scaled up. */
static int64_t block_size(int64_t count, int64_t size)
{
    return count == -1 ? (size == INT64_MIN ? INT64_MAX : -size) : size / count;
}

static int add_heap_sample(struct text_profile *text, struct line line, struct error *error)
{
    struct profile *staged = &text->reader.staged;
    int64_t n[4] = {0}, block = 0;
    bool java = text->kind == TEXT_JAVA_HEAP;
    bool parsed =
        java ? take_number(&line, &n[1]) && take_number(&line, &n[0]) && take_char(&line, '@')
             : take_heap_numbers(&line, n);
    if (!parsed || !gperftools_stack(&text->reader, line.text, line.length, java ? 0 : -1))
        return malformed(text, error);
    uint32_t node = gperftools_take_stack(&text->reader);
    for (int pair = text->has_alloc ? 2 : 0; pair >= 0; pair -= 2) {
        if (!n[pair] && n[pair + 1])
            return error_set(error, -EBADMSG, "Line %llu has %lld bytes but no objects.",
                             (unsigned long long)text->reader.line, (long long)n[pair + 1]);
        if (n[pair])
            block = block_size(n[pair], n[pair + 1]);
        if (n[pair] && text->unbias)
            unbias(&n[pair], &n[pair + 1], text->period);
    }
    uint32_t labels = 0;
    if (text->reader.profile->detail & PROFILE_LABELS)
        labels = profile_label_set(
            staged, &(struct profile_label){.key = text->bytes_key, .number = block}, 1);
    size_t row = profile_sample(staged, node, labels, 0, 0);
    for (int i = 0; i < (text->has_alloc ? 4 : 2); i++)
        profile_add_value(staged, row, (unsigned)i, n[i]);
    return 0;
}

static int add_contention_sample(struct text_profile *text, struct line line, struct error *error)
{
    struct profile *staged = &text->reader.staged;
    int64_t delay, count;
    if (!take_number(&line, &delay) || !take_number(&line, &count) || !take_char(&line, '@') ||
        !gperftools_stack(&text->reader, line.text, line.length, text->reader.java ? 0 : -1))
        return malformed(text, error);
    count = multiply(count, text->period);
    if (text->clock_hz && !text->reader.java)
        delay = to_integer((double)delay * (double)text->period / ((double)text->clock_hz / 1e9));
    else if (text->reader.java)
        delay = multiply(delay, text->period);
    size_t row = profile_sample(staged, gperftools_take_stack(&text->reader), 0, 0, 0);
    profile_add_value(staged, row, STAGED_FIRST, count);
    profile_add_value(staged, row, STAGED_SECOND, delay);
    return 0;
}

static int add_count_sample(struct text_profile *text, struct line line, struct error *error)
{
    struct profile *staged = &text->reader.staged;
    int64_t count;
    if (!take_number(&line, &count) || !take_char(&line, '@') ||
        !gperftools_stack(&text->reader, line.text, line.length, -1))
        return malformed(text, error);
    size_t row = profile_sample(staged, gperftools_take_stack(&text->reader), 0, 0, 0);
    profile_add_value(staged, row, STAGED_FIRST, count);
    return 0;
}

static int add_sample(struct text_profile *text, struct line line, struct error *error)
{
    gperftools_end_symbols(&text->reader);
    if (text->kind == TEXT_CONTENTION)
        return add_contention_sample(text, line, error);
    if (text->kind == TEXT_COUNT)
        return add_count_sample(text, line, error);
    return add_heap_sample(text, line, error);
}

/* All lines after the header. */
static int read_lines(struct text_profile *text, struct source *source, struct error *error)
{
    struct gperftools *reader = &text->reader;
    struct line line;
    bool in_header = text->kind == TEXT_CONTENTION || text->kind == TEXT_JAVA_HEAP;
    bool other_section = false;
    int r;
    while ((r = source_line(source, &line.text, &line.length, error)) > 0) {
        reader->line++;
        trim(&line);
        if (is_map_header(&line))
            return gperftools_read_maps(reader, source, error);
        if (!line.length || other_section || gperftools_go_symbol(reader, line.text, line.length) ||
            *line.text == '#')
            continue;
        if (starts_with(&line, "---")) {
            other_section = true;
            continue;
        }
        if (in_header && parse_attribute(text, line))
            continue;
        in_header = false;
        if (reader->java && gperftools_java_location(reader, line.text, line.length))
            continue;
        r = add_sample(text, line, error);
        if (r == 0 && reader->line % 4096 == 0)
            r = gperftools_check_full(reader, error);
        if (r < 0)
            return r;
    }
    return r;
}

/* ---- threads ---- */

/* A thread's stack ends where the next one begins. Threads without one are left out, as pprof
 * leaves them out. */
static void end_thread(struct text_profile *text)
{
    struct profile *staged = &text->reader.staged;
    uint32_t node = text->same_stack ? text->last_node : gperftools_take_stack(&text->reader);
    if (text->in_thread && node)
        profile_add_value(staged, profile_sample(staged, node, 0, 0, 0), STAGED_FIRST, 1);
    text->last_node = node ? node : text->last_node;
    text->in_thread = text->same_stack = false;
    text->reader.frame_count = 0;
}

/* Stacks of one or more addresses per line: the first is where the thread is, the others are where
 * calls return to. */
static int read_threads(struct text_profile *text, struct source *source, struct error *error)
{
    struct gperftools *reader = &text->reader;
    struct line line;
    int r;
    while ((r = source_line(source, &line.text, &line.length, error)) > 0) {
        reader->line++;
        trim(&line);
        if (!line.length)
            continue;
        bool maps = is_map_header(&line);
        if (maps || starts_with(&line, "---")) {
            end_thread(text);
            if (maps)
                return gperftools_read_maps(reader, source, error);
            text->in_thread = is_thread_header(&line);
        } else if (text->in_thread && contains(&line, "same as previous thread")) {
            text->same_stack = true;
        } else if (text->in_thread && !gperftools_add_addresses(reader, line.text, line.length)) {
            return malformed(text, error);
        }
        if (reader->line % 4096 == 0 && (r = gperftools_check_full(reader, error)) < 0)
            return r;
    }
    end_thread(text);
    return r;
}

/* ---- the whole ---- */

struct type_name {
    const char *type, *unit;
};

/* The names of the staged types. */
static unsigned name_types(const struct text_profile *text, struct type_name names[STAGED_TYPES])
{
    switch (text->kind) {
    case TEXT_COUNT:
    case TEXT_THREADS:
        names[0] = (struct type_name){text->name, "count"};
        return 1;
    case TEXT_CONTENTION:
        names[0] = (struct type_name){"contentions", "count"};
        names[1] = (struct type_name){"delay", *text->unit ? text->unit : "nanoseconds"};
        return 2;
    case TEXT_GROWTH:
        names[0] = (struct type_name){"objects", "count"};
        names[1] = (struct type_name){"space", "bytes"};
        return 2;
    default:
        names[0] = (struct type_name){"inuse_objects", "count"};
        names[1] = (struct type_name){"inuse_space", *text->unit ? text->unit : "bytes"};
        names[2] = (struct type_name){"alloc_objects", "count"};
        names[3] = (struct type_name){"alloc_space", "bytes"};
        return text->has_alloc ? 4 : 2;
    }
}

static int finish(struct text_profile *text, struct error *error)
{
    struct profile *profile = text->reader.profile;
    struct type_name names[STAGED_TYPES] = {0};
    unsigned types[STAGED_TYPES], count = name_types(text, names);
    /* Allocated memory comes before memory in use, as in pprof, which shows the last type. */
    for (unsigned i = 0, first = count > 2 ? STAGED_ALLOC_COUNT : 0; i < count; i++) {
        unsigned type = (first + i) % count;
        types[type] = profile_type(profile, profile_cstring(profile, names[type].type),
                                   profile_cstring(profile, names[type].unit));
        if (types[type] == PROFILE_TYPES_MAX)
            return error_set(error, -E2BIG, "Together the files have more than %d sample types.",
                             PROFILE_TYPES_MAX);
    }
    if (!profile->default_type)
        profile->default_type = profile_cstring(profile, names[count > 1].type);
    bool heap = text->kind == TEXT_HEAP || text->kind == TEXT_GROWTH;
    if (text->kind != TEXT_JAVA_HEAP)
        profile_note_period(profile, profile_cstring(profile, heap ? "space" : names[0].type),
                            profile_cstring(profile, heap ? "bytes" : "count"), text->period);
    gperftools_finish(&text->reader, text->duration_ns, types, count);
    return 0;
}

static void release_text(struct text_profile *text)
{
    gperftools_release(&text->reader);
}

static int heap_read(struct source *source, struct profile *profile, struct error *error)
{
    _cleanup_(release_text) struct text_profile text = {0};
    gperftools_init(&text.reader, profile, STAGED_TYPES);
    text.bytes_key = profile_cstring(&text.reader.staged, "bytes");
    struct line line;
    int r;
    do {
        r = source_line(source, &line.text, &line.length, error);
        if (r < 0)
            return r;
        if (r == 0)
            return error_set(error, -EBADMSG, "The profile has no header.");
        text.reader.line++;
        trim(&line);
    } while (!line.length || *line.text == '#');
    if (parse_header(&text, line) == TEXT_NONE)
        return error_set(error, -EBADMSG, "Line %llu is not a header of a heap profile.",
                         (unsigned long long)text.reader.line);
    if (text.kind == TEXT_JAVA_HEAP)
        text.reader.java = true;
    r = text.kind == TEXT_THREADS ? read_threads(&text, source, error)
                                  : read_lines(&text, source, error);
    return r < 0 ? r : finish(&text, error);
}

static int heap_detect(const uint8_t *bytes, size_t length)
{
    struct text_profile text = {0};
    const char *at = (const char *)bytes, *end = at + length;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        struct line line = {at, (size_t)((newline ? newline : end) - at)};
        at = newline ? newline + 1 : end;
        trim(&line);
        if (line.length && *line.text != '#')
            return parse_header(&text, line) == TEXT_NONE ? 0 : 3;
    }
    return 0;
}

const struct format format_gperftools_heap = {
    .name = "gperftools-heap",
    .text = true,
    .summary = "gperftools heap profile, and pprof's other text profiles",
    .extensions = "",
    .detect = heap_detect,
    .read = heap_read,
};
