// SPDX-License-Identifier: Apache-2.0
// Opening a symbol index and asking it: see index.h.

#include "symbol/index/index.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "symbol/index/decode.h"

/* Each part is an array of things of that many bytes. */
static const uint8_t element_bytes[SYMBOL_INDEX_PART_COUNT] = {
    [SYMBOL_INDEX_SEGMENTS] = sizeof(struct symbol_index_segment),
    [SYMBOL_INDEX_GROUPS] = sizeof(struct symbol_index_group),
    [SYMBOL_INDEX_ROWS] = 1,
    [SYMBOL_INDEX_NODE_GROUPS] = sizeof(uint32_t),
    [SYMBOL_INDEX_NODES] = 1,
    [SYMBOL_INDEX_FUNCTIONS] = sizeof(struct symbol_index_function),
    [SYMBOL_INDEX_FILES] = sizeof(uint32_t),
    [SYMBOL_INDEX_STRINGS] = 1,
};

static int damaged(struct error *error, const char *what)
{
    return error_set(error, -EBADMSG,
                     "The symbol index is damaged (%s). Rebuild it from its binary.", what);
}

static int check_header(const struct symbol_index_header *header, size_t length,
                        struct error *error)
{
    if (length < offsetof(struct symbol_index_header, file_bytes) ||
        memcmp(header->magic, SYMBOL_INDEX_MAGIC, sizeof(header->magic)) != 0)
        return error_set(error, -EBADMSG, "Not a symbol index.");
    if (header->version != SYMBOL_INDEX_VERSION)
        return error_set(error, -ENOTSUP,
                         "The symbol index has version %u, but this program reads %u. Rebuild it "
                         "from its binary.",
                         header->version, SYMBOL_INDEX_VERSION);
    if (length < sizeof(*header) || header->header_bytes != sizeof(*header) ||
        header->file_bytes != length)
        return damaged(error, "its length");
    if (symbol_index_header_checksum(header) != header->header_checksum)
        return damaged(error, "its header");
    if (header->id_bytes > SYMBOL_INDEX_ID_MAX)
        return damaged(error, "its build ID");
    return 0;
}

static int find_parts(struct symbol_index *index, struct error *error)
{
    const struct symbol_index_header *header = index->header;
    for (int i = 0; i < SYMBOL_INDEX_PART_COUNT; i++) {
        uint64_t offset = header->parts[i].offset, length = header->parts[i].length;
        if (offset > index->length || length > index->length - offset || offset % 8 ||
            length % element_bytes[i] || length > UINT32_MAX)
            return damaged(error, "its parts");
        index->parts[i] = index->bytes + offset;
    }
    index->group_count =
        (uint32_t)(header->parts[SYMBOL_INDEX_GROUPS].length / sizeof(struct symbol_index_group));
    index->node_group_count =
        (uint32_t)(header->parts[SYMBOL_INDEX_NODE_GROUPS].length / sizeof(uint32_t));
    index->function_count = (uint32_t)(header->parts[SYMBOL_INDEX_FUNCTIONS].length /
                                       sizeof(struct symbol_index_function));
    index->file_count = (uint32_t)(header->parts[SYMBOL_INDEX_FILES].length / sizeof(uint32_t));
    uint64_t strings = header->parts[SYMBOL_INDEX_STRINGS].length;
    /* Then every string ends within the part. */
    if (!strings || index->parts[SYMBOL_INDEX_STRINGS][strings - 1])
        return damaged(error, "its strings");
    if (header->node_count > (uint64_t)index->node_group_count * SYMBOL_INDEX_NODES_PER_GROUP)
        return damaged(error, "its nodes");
    return 0;
}

int symbol_index_open_memory(const void *bytes, size_t length, struct symbol_index *ret_index,
                             struct error *error)
{
    struct symbol_index index = {.bytes = bytes, .length = length, .header = bytes};
    int r = check_header(index.header, length, error);
    if (r >= 0)
        r = find_parts(&index, error);
    if (r >= 0)
        *ret_index = index;
    return r;
}

int symbol_index_open(const char *path, struct symbol_index *ret_index, struct error *error)
{
    struct stat found;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &found) < 0) {
        int code = -errno;
        if (fd >= 0)
            close(fd);
        return error_set_errno(error, code, "Failed to open the symbol index %s", path);
    }
    void *map = S_ISREG(found.st_mode) && found.st_size > 0
                    ? mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
                    : MAP_FAILED;
    close(fd);
    if (map == MAP_FAILED)
        return error_set(error, -EBADMSG, "%s: Not a symbol index.", path);
    int r = symbol_index_open_memory(map, (size_t)found.st_size, ret_index, error);
    if (r < 0) {
        munmap(map, (size_t)found.st_size);
        error_prefix(error, "%s", path);
        return r;
    }
    ret_index->is_mapped = true;
    return 0;
}

void symbol_index_close(struct symbol_index *index)
{
    if (index->is_mapped)
        munmap((void *)(uintptr_t)index->bytes, index->length);
    *index = (struct symbol_index){0};
}

/* ---- quality ---- */

enum symbol_index_quality symbol_index_quality(const struct symbol_index *index)
{
    uint32_t sources = index->header->sources;
    if (sources & SYMBOL_INDEX_FROM_INLINES)
        return SYMBOL_INDEX_INLINES;
    if (sources & SYMBOL_INDEX_FROM_LINES)
        return SYMBOL_INDEX_NAMED_LINES;
    if (sources &
        (SYMBOL_INDEX_FROM_FUNCTIONS | SYMBOL_INDEX_FROM_SYMBOLS | SYMBOL_INDEX_FROM_PACKED))
        return SYMBOL_INDEX_SYMBOLS;
    if (sources & SYMBOL_INDEX_FROM_DYNAMIC)
        return SYMBOL_INDEX_DYNAMIC;
    return sources & SYMBOL_INDEX_FROM_UNWIND ? SYMBOL_INDEX_STARTS : SYMBOL_INDEX_NOTHING;
}

const char *symbol_index_quality_text(enum symbol_index_quality quality)
{
    switch (quality) {
    case SYMBOL_INDEX_INLINES:
        return "functions, inlined functions, lines";
    case SYMBOL_INDEX_NAMED_LINES:
        return "functions, lines";
    case SYMBOL_INDEX_SYMBOLS:
        return "symbols";
    case SYMBOL_INDEX_DYNAMIC:
        return "dynamic symbols only";
    case SYMBOL_INDEX_STARTS:
        return "starts of functions only";
    case SYMBOL_INDEX_NOTHING:
        break;
    }
    return "nothing";
}

/* ---- asking ---- */

/* The last group that doesn't start behind the address; false when there is none. */
static bool find_group(const struct symbol_index *index, uint32_t distance, uint32_t *ret_group)
{
    const struct symbol_index_group *groups =
        (const struct symbol_index_group *)(const void *)index->parts[SYMBOL_INDEX_GROUPS];
    uint32_t low = 0, count = index->group_count;
    if (!count || groups[0].address > distance)
        return false;
    /* Which half is a matter of chance, so no branch depends on it. */
    while (count > 1) {
        uint32_t half = count / 2;
        low = groups[low + half].address <= distance ? low + half : low;
        count -= half;
    }
    *ret_group = low;
    return true;
}

static void set_function(const struct symbol_index *index, uint32_t number,
                         struct symbol_frame *frame)
{
    const struct symbol_index_function *functions =
        (const struct symbol_index_function *)(const void *)index->parts[SYMBOL_INDEX_FUNCTIONS];
    if (number >= index->function_count)
        return;
    frame->name = symbol_index_string(index, functions[number].name);
    frame->system_name = symbol_index_string(index, functions[number].system_name);
    frame->start_line = functions[number].start_line;
}

const char *symbol_index_file(const struct symbol_index *index, uint32_t number)
{
    const uint32_t *files = (const uint32_t *)(const void *)index->parts[SYMBOL_INDEX_FILES];
    return number < index->file_count ? symbol_index_string(index, files[number]) : NULL;
}

size_t symbol_index_look_up(const struct symbol_index *index, uint64_t address,
                            struct symbol_frame *frames, size_t most, uint64_t *ret_start)
{
    uint64_t distance = address - index->header->base, start = 0;
    uint32_t group;
    struct symbol_index_row row;
    struct symbol_index_nodes nodes;
    size_t count = 0;
    nodes.count = 0;
    if (ret_start)
        *ret_start = 0;
    if (!most || address < index->header->base || distance > UINT32_MAX ||
        !find_group(index, (uint32_t)distance, &group) ||
        !symbol_index_row_find(index, group, (uint32_t)distance, &row))
        return 0;
    uint32_t file = row.file, line = row.line, node = row.node;
    while (node && count < most) {
        const struct symbol_index_node *content = symbol_index_node_find(index, node, &nodes);
        if (!content)
            break;
        frames[count] = (struct symbol_frame){.file = symbol_index_file(index, file), .line = line};
        set_function(index, content->function, &frames[count]);
        /* An inlined function without a name is left out. */
        if (frames[count].name || (!content->parent && !count))
            count++;
        file = content->file;
        line = content->line;
        start = content->start;
        node = content->parent;
    }
    if (!count && (row.file || row.line))
        frames[count++] =
            (struct symbol_frame){.file = symbol_index_file(index, row.file), .line = row.line};
    if (ret_start && !node)
        *ret_start = start;
    return count;
}

bool symbol_index_address(const struct symbol_index *index, uint64_t offset, uint64_t *ret_address)
{
    const struct symbol_index_segment *segments =
        (const struct symbol_index_segment *)(const void *)index->parts[SYMBOL_INDEX_SEGMENTS];
    size_t count = index->header->parts[SYMBOL_INDEX_SEGMENTS].length / sizeof(*segments);
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        if (offset < segments[i].offset || offset - segments[i].offset >= segments[i].bytes)
            continue;
        /* Two segments may share a page: the one with code is meant. */
        if (!found || segments[i].is_code)
            *ret_address = segments[i].address + (offset - segments[i].offset);
        found = true;
        if (segments[i].is_code)
            break;
    }
    return found;
}
