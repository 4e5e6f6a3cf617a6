// SPDX-License-Identifier: Apache-2.0
// Compiled rows as a file: see rows_file.h.

#include "elf/unwind/rows_file.h"

#include <unistd.h>
#define XXH_STATIC_LINKING_ONLY /* for the state, which lives on our stack */
#include <xxhash.h>

#include "base/memory.h"

static const char magic[8] = {'a', 's', 's', 'a', 'y', 'r', 'o', 'w'};

#define FIRST_RULES 3 /* those that every table begins with */

/* As it is in the file, in the byte order of the machine, behind which are the rules, the page
 * directory and the rows. Their sizes follow from the counts and must add up to the file's. */
struct header {
    char magic[8];
    uint32_t version;      /* ROWS_FILE_VERSION */
    uint32_t rule_version; /* UNWIND_RULE_VERSION */
    uint64_t checksum;     /* XXH3 of all that follows it */
    uint64_t source_bytes;
    uint64_t first_page;
    uint32_t page_count;
    uint32_t row_count;
    uint32_t rule_count;
    uint32_t build_id_length;
    uint8_t build_id[ELF_BUILD_ID_MAX]; /* zeros behind its length */
    uint64_t bad_entries;
    uint64_t bad_programs;
    uint64_t outside;
    uint64_t unsupported_rows;
};
_Static_assert(sizeof(struct header) == 152, "the layout has no holes");

#define CHECKED_FROM (offsetof(struct header, checksum) + sizeof(uint64_t))

/* ---- writing ---- */

/* Rules by their order of use in this file. */
struct numbering {
    uint16_t *local;  /* by number in the table; 0 where it is not used, but for rule 0 */
    uint16_t *global; /* by number in the file */
    uint32_t count;
};

static struct numbering number_rules(const struct unwind_rows *rows,
                                     const struct unwind_rules *rules)
{
    struct numbering numbering = {.local = memory_zalloc(rules->count, sizeof(uint16_t)),
                                  .global = memory_zalloc(rules->count, sizeof(uint16_t)),
                                  .count = FIRST_RULES};
    for (uint16_t i = 0; i < FIRST_RULES; i++)
        numbering.local[i] = numbering.global[i] = i;
    for (uint32_t i = 0; i < rows->row_count; i++) {
        uint16_t rule = rows->rows[i].rule;
        if (rule < FIRST_RULES || numbering.local[rule])
            continue;
        numbering.global[numbering.count] = rule;
        numbering.local[rule] = (uint16_t)numbering.count++;
    }
    return numbering;
}

int rows_file_write(const struct rows_identity *identity, const struct unwind_rows *rows,
                    const struct unwind_rules *rules, struct buffer *out)
{
    struct numbering numbering = number_rules(rows, rules);
    struct header header = {.version = ROWS_FILE_VERSION,
                            .rule_version = UNWIND_RULE_VERSION,
                            .source_bytes = identity->source_bytes,
                            .first_page = rows->first_page,
                            .page_count = rows->page_count,
                            .row_count = rows->row_count,
                            .rule_count = numbering.count,
                            .build_id_length = (uint32_t)identity->build_id_length,
                            .bad_entries = rows->bad_entries,
                            .bad_programs = rows->bad_programs,
                            .outside = rows->outside,
                            .unsupported_rows = rows->unsupported_rows};
    size_t start = out->length;
    memcpy(header.magic, magic, sizeof(magic));
    memcpy(header.build_id, identity->build_id, identity->build_id_length);
    size_t bytes = sizeof(header) + numbering.count * sizeof(*rules->rules) +
                   (rows->page_count + (size_t)1) * sizeof(*rows->pages) +
                   rows->row_count * sizeof(*rows->rows);
    if (!buffer_try_reserve(out, bytes)) {
        free(numbering.local);
        free(numbering.global);
        return -ENOMEM;
    }
    buffer_add(out, &header, sizeof(header));
    for (uint32_t i = 0; i < numbering.count; i++)
        buffer_add(out, &rules->rules[numbering.global[i]], sizeof(*rules->rules));
    buffer_add(out, rows->pages, (rows->page_count + (size_t)1) * sizeof(*rows->pages));
    for (uint32_t i = 0; i < rows->row_count; i++) {
        struct unwind_row row = rows->rows[i];
        row.rule = numbering.local[row.rule];
        buffer_add(out, &row, sizeof(row));
    }
    uint64_t checksum =
        XXH3_64bits(out->data + start + CHECKED_FROM, out->length - start - CHECKED_FROM);
    memcpy(out->data + start + offsetof(struct header, checksum), &checksum, sizeof(checksum));
    free(numbering.local);
    free(numbering.global);
    return 0;
}

/* ---- reading ---- */

static int damaged(struct error *error, const char *what)
{
    return error_set(error, -EBADMSG, "The file of unwind rows is damaged: %s.", what);
}

static bool same_binary(const struct header *header, const struct rows_identity *identity)
{
    return header->source_bytes == identity->source_bytes &&
           header->build_id_length == identity->build_id_length &&
           !memcmp(header->build_id, identity->build_id, identity->build_id_length);
}

static int check_header(const struct header *header, uint64_t length,
                        const struct rows_identity *identity, struct error *error)
{
    if (memcmp(header->magic, magic, sizeof(magic)))
        return damaged(error, "invalid header");
    if (header->version != ROWS_FILE_VERSION || header->rule_version != UNWIND_RULE_VERSION)
        return error_set(error, -ESTALE, "The file of unwind rows has an unsupported version.");
    if (header->page_count > UNWIND_PAGES_MAX || header->rule_count < FIRST_RULES ||
        header->rule_count > UNWIND_RULES_MAX ||
        header->first_page > (UINT64_MAX >> UNWIND_PAGE_SHIFT) - header->page_count)
        return damaged(error, "a number in its header is out of range");
    uint64_t expected = sizeof(*header) +
                        (uint64_t)header->rule_count * sizeof(struct unwind_rule) +
                        (header->page_count + (uint64_t)1) * sizeof(uint32_t) +
                        (uint64_t)header->row_count * sizeof(struct unwind_row);
    if (length != expected)
        return damaged(error, "its size doesn't match its header");
    if (!same_binary(header, identity))
        return error_set(error, -ESTALE, "The file of unwind rows belongs to a different binary.");
    return 0;
}

/* Offsets that ascend from 0 and stay in the page, and rules that there are. */
static bool page_is_sound(const struct unwind_row *rows, uint32_t count, uint32_t rule_count)
{
    uint32_t before = rows[0].offset;
    uint32_t bad = before | (rows[0].rule >= rule_count);
    for (uint32_t i = 1; i < count; i++) {
        uint32_t offset = rows[i].offset;
        bad |= (offset <= before) | (rows[i].rule >= rule_count);
        before = offset;
    }
    return !bad && before < UNWIND_PAGE_BYTES;
}

/* Properties on which unwind_rows_find and copies into the kernel rely. */
static bool rows_are_sound(const struct unwind_rows *rows, uint32_t rule_count)
{
    if (rows->pages[0] || rows->pages[rows->page_count] != rows->row_count)
        return false;
    for (uint32_t page = 0; page < rows->page_count; page++) {
        uint32_t first = rows->pages[page], end = rows->pages[page + 1];
        if (first > end || end > rows->row_count)
            return false;
        if (first < end && !page_is_sound(rows->rows + first, end - first, rule_count))
            return false;
    }
    return true;
}

static void renumber(struct unwind_rows *rows, const struct unwind_rule *local, uint32_t count,
                     struct unwind_rules *rules)
{
    _cleanup_free_ uint16_t *numbers = memory_zalloc(count, sizeof(*numbers));
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = unwind_rules_add(rules, local[i]);
    struct unwind_row *row = rows->rows;
    for (const struct unwind_row *end = row + rows->row_count; row < end; row++)
        row->rule = numbers[row->rule];
}

/* Content from a descriptor or, where that is -1, from memory; all of it goes through the checksum
 * but for what stands before that. */
struct input {
    int fd;
    const uint8_t *bytes;
    uint64_t length;
    uint64_t at;
    XXH3_state_t state;
};

static bool take(struct input *input, void *to, size_t length)
{
    if (length > input->length - input->at)
        return false;
    for (size_t done = 0; done < length;) {
        ssize_t got = (ssize_t)(length - done);
        if (input->fd < 0)
            memcpy((char *)to + done, input->bytes + input->at, (size_t)got);
        else
            got = pread(input->fd, (char *)to + done, (size_t)got, (off_t)input->at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
        input->at += (uint64_t)got;
    }
    return true;
}

static bool take_checked(struct input *input, void *to, size_t length)
{
    if (!take(input, to, length))
        return false;
    XXH3_64bits_update(&input->state, to, length);
    return true;
}

static int read_content(struct input *input, const struct rows_identity *identity,
                        struct unwind_rules *rules, struct unwind_rows *ret_rows,
                        struct error *error)
{
    struct header header;
    XXH3_64bits_reset(&input->state);
    if (!take(input, &header, sizeof(header)))
        return damaged(error, "it ends within its header");
    XXH3_64bits_update(&input->state, (char *)&header + CHECKED_FROM,
                       sizeof(header) - CHECKED_FROM);
    int r = check_header(&header, input->length, identity, error);
    if (r < 0)
        return r;
    /* Counts are good from here on: the file really is that long. */
    size_t rule_bytes = header.rule_count * sizeof(struct unwind_rule);
    size_t page_bytes = (header.page_count + (size_t)1) * sizeof(uint32_t);
    size_t row_bytes = header.row_count * sizeof(struct unwind_row);
    _cleanup_free_ struct unwind_rule *local = memory_try_alloc(rule_bytes);
    _cleanup_rows_ struct unwind_rows rows = {.first_page = header.first_page,
                                              .page_count = header.page_count,
                                              .row_count = header.row_count,
                                              .pages = memory_try_alloc(page_bytes),
                                              .rows = memory_try_alloc(row_bytes),
                                              .bad_entries = header.bad_entries,
                                              .bad_programs = header.bad_programs,
                                              .outside = header.outside,
                                              .unsupported_rows = header.unsupported_rows};
    if (!local || !rows.pages || !rows.rows)
        return error_set(error, -ENOMEM, "There is not enough memory for the unwind rows.");
    if (!take_checked(input, local, rule_bytes) || !take_checked(input, rows.pages, page_bytes) ||
        !take_checked(input, rows.rows, row_bytes))
        return damaged(error, "it ends too early");
    if (XXH3_64bits_digest(&input->state) != header.checksum)
        return damaged(error, "its checksum is wrong");
    if (memcmp(local, rules->rules, FIRST_RULES * sizeof(*local)))
        return damaged(error, "its first rules are not the common ones");
    if (!rows_are_sound(&rows, header.rule_count))
        return damaged(error, "its rows are not in order");
    renumber(&rows, local, header.rule_count, rules);
    *ret_rows = rows;
    rows = (struct unwind_rows){0};
    return 0;
}

int rows_file_parse(const void *content, size_t length, const struct rows_identity *identity,
                    struct unwind_rules *rules, struct unwind_rows *ret_rows, struct error *error)
{
    struct input input = {.fd = -1, .bytes = content, .length = length};
    return read_content(&input, identity, rules, ret_rows, error);
}

int rows_file_read(int fd, uint64_t length, const struct rows_identity *identity,
                   struct unwind_rules *rules, struct unwind_rows *ret_rows, struct error *error)
{
    struct input input = {.fd = fd, .length = length};
    return read_content(&input, identity, rules, ret_rows, error);
}
