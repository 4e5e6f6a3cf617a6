// SPDX-License-Identifier: Apache-2.0
// Which of two files of a build is the better one: by the names that its index has, and by the
// debug sections that debuggers want of it. See store.h.

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "elf/file.h"
#include "symbol/store/internal.h"

enum symbol_file symbol_file_of(const struct symbol_identity *identity)
{
    return identity->is_package ? SYMBOL_PACKAGE
           : identity->has_code ? SYMBOL_EXECUTABLE
                                : SYMBOL_DEBUGINFO;
}

/* More names beat fewer, whatever their source; and knowing where code lies in its file beats not
 * knowing. */
static int compare(const struct symbol_index *a, const struct symbol_index *b)
{
    const struct symbol_index_header *x = a->header, *y = b->header;
    int quality = (int)symbol_index_quality(a) - (int)symbol_index_quality(b);
    bool placed = symbol_store_is_placed(a), other = symbol_store_is_placed(b);
    if (quality || placed != other)
        return quality ? quality : placed ? 1 : -1;
    if (x->line_bytes != y->line_bytes)
        return x->line_bytes > y->line_bytes ? 1 : -1;
    return (x->named_bytes > y->named_bytes) - (x->named_bytes < y->named_bytes);
}

/* The sections that strip(1) removes: which of them have content, a bit each. */
static unsigned debug_sections(const struct elf_file *file)
{
    static const char *const names[] = {
        "abbrev",   "addr",   "aranges",  "cu_index", "frame",       "info",  "line",
        "line_str", "loc",    "loclists", "macinfo",  "macro",       "names", "pubnames",
        "pubtypes", "ranges", "rnglists", "str",      "str_offsets", "types", "tu_index"};
    const unsigned symtab = 1u << ARRAY_LENGTH(names);
    unsigned found = 0;
    for (size_t i = 0; i < file->section_count; i++) {
        const struct elf_section *section = &file->sections[i];
        const char *name = section->name;
        bool compressed = !strncmp(name, ".zdebug_", 8);
        if (section->type == SHT_NOBITS || !section->size_bytes)
            continue;
        found |= strcmp(name, ".symtab") ? 0 : symtab;
        if (!compressed && strncmp(name, ".debug_", 7))
            continue;
        for (unsigned k = 0; k < ARRAY_LENGTH(names); k++)
            found |= strcmp(name + 7 + compressed, names[k]) ? 0 : 1u << k;
    }
    return found;
}

/* Takes a copy of the descriptor. */
static bool open_copy(int fd, struct elf_file *ret_file)
{
    int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return false;
    if (elf_open_foreign_fd(copy, ret_file, NULL) == 0)
        return true;
    close(copy);
    return false;
}

/* The parts that a new file has and the stored one of its kind lacks, and the reverse. A file that
 * is the first of its kind, or whose predecessor can't be read, lacks nothing. */
struct difference {
    bool first, gains, lacks;
};

static struct difference compare_files(struct symbol_store *store, const char *tenant,
                                       const struct symbol_identity *identity, int file)
{
    _cleanup_elf_ struct elf_file fresh = {.fd = -1}, known = {.fd = -1};
    struct difference difference = {0};
    uint64_t bytes;
    int fd = symbol_store_open_file(store, tenant, identity->key, symbol_file_of(identity), &bytes);
    difference.first = fd < 0;
    if (open_copy(file, &fresh) && open_copy(fd, &known)) {
        unsigned now = debug_sections(&fresh), before = debug_sections(&known);
        difference.gains = now & ~before;
        difference.lacks = before & ~now;
    }
    if (fd >= 0)
        close(fd);
    return difference;
}

/* A file with fewer debug sections than the one that it would replace is worse than that, unless
 * its names are of a better kind. With equal names, the first binary, or a file with more debug
 * sections, is better for debuggers. */
bool symbol_store_improves(struct symbol_store *store, const char *tenant,
                           const struct symbol_identity *identity, int file,
                           const struct buffer *index, enum symbol_index_quality *ret_quality)
{
    _cleanup_buffer_ struct buffer path = {0};
    struct symbol_index fresh, known;
    *ret_quality = SYMBOL_INDEX_NOTHING;
    if (symbol_index_open_memory(index->data, index->length, &fresh, NULL) < 0)
        return false;
    enum symbol_index_quality quality = *ret_quality = symbol_index_quality(&fresh);
    symbol_store_path(store, tenant, identity->key, "index", &path);
    if (symbol_index_open(buffer_text(&path), &known, NULL) < 0)
        return true;
    int names = compare(&fresh, &known);
    enum symbol_index_quality before = symbol_index_quality(&known);
    struct difference files = compare_files(store, tenant, identity, file);
    symbol_index_close(&known);
    bool better = names > 0 ? quality > before || !files.lacks
                            : !names && !files.lacks &&
                                  (files.gains || (files.first && identity->has_code && file >= 0));
    *ret_quality = better ? quality : MAX(quality, before);
    return better;
}
