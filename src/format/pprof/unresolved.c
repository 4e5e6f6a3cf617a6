// SPDX-License-Identifier: Apache-2.0
// pprof's stacks by content, for stores that know most of them: what the frames of a location are
// is hashed once, right from the file's tables, and a stack's digest is made of its locations'. All
// that stacks refer to is checked on the way, so that putting one together later can't fail.

#include "profile/unresolved.h"
#include "base/memory.h"
#include "format/pprof/reader.h"

struct pprof_unresolved {
    struct unresolved_stacks unresolved;
    struct pprof_reader *reader;
    struct location_frames *where;  /* frames of the locations */
    uint32_t *origins;              /* locations of the frames */
    uint64_t *functions, *mappings; /* hashes */
    uint64_t no_function;
};

/* While digests are made. */
struct digesting {
    struct pprof_reader *reader;
    uint64_t seed, empty, no_function, no_mapping;
    uint64_t *strings;             /* hashes; 0: not yet */
    uint64_t *functions;           /* hashes */
    uint64_t *mappings;            /* hashes */
    struct digest *frames;         /* of all locations, each's outermost first */
    struct digest *single;         /* of locations that are one frame; `high` is 0 else */
    struct location_frames *where; /* in `frames`, by location */
    uint32_t *origins;             /* locations, by frame */
    size_t frame_count;
};

static void digesting_release(struct digesting *work)
{
    free(work->strings);
    free(work->functions);
    free(work->mappings);
    free(work->frames);
    free(work->single);
    free(work->where);
    free(work->origins);
}

static int string_hash(struct digesting *work, uint64_t index, const char *what, uint64_t *ret_hash,
                       struct error *error)
{
    struct raw_string string;
    int r = pprof_string(work->reader, index, what, &string, error);
    if (r < 0)
        return r;
    if (!string.length)
        *ret_hash = work->empty;
    else if (work->strings[index])
        *ret_hash = work->strings[index];
    else
        *ret_hash = work->strings[index] = unresolved_string_hash(
            work->reader->text.data + string.offset, string.length, work->seed);
    return 0;
}

/* Of an index that was checked. */
static struct name_text string_text(struct pprof_reader *reader, uint64_t index)
{
    struct raw_string string;
    pprof_string(reader, index, "A function", &string, NULL);
    return (struct name_text){reader->text.data + string.offset, string.length};
}

static int hash_functions(struct digesting *work, struct error *error)
{
    struct pprof_reader *reader = work->reader;
    int r = 0;
    work->functions = memory_alloc((reader->function_count + 1) * sizeof(*work->functions));
    for (size_t i = 0; !r && i < reader->function_count; i++) {
        const struct raw_function *raw = &reader->functions[i];
        struct unresolved_function function = {.start_line = raw->start_line};
        r = string_hash(work, raw->name, "A function", &function.name, error);
        if (!r)
            r = string_hash(work, raw->system_name, "A function", &function.system_name, error);
        if (!r)
            r = string_hash(work, raw->file, "A function", &function.file, error);
        bool named = function.name != work->empty || function.system_name != work->empty ||
                     function.file != work->empty;
        if (!r && named)
            unresolved_choose_name(&function, string_text(reader, raw->name),
                                   string_text(reader, raw->system_name), work->seed);
        work->functions[i] =
            named ? unresolved_function_hash(function, work->seed) : work->no_function;
    }
    return r;
}

static int hash_mappings(struct digesting *work, struct error *error)
{
    struct pprof_reader *reader = work->reader;
    int r = 0;
    work->mappings = memory_alloc((reader->mapping_count + 1) * sizeof(*work->mappings));
    for (size_t i = 0; !r && i < reader->mapping_count; i++) {
        struct profile_mapping mapping = reader->mappings[i].mapping;
        uint64_t file = 0, build_id = 0;
        r = string_hash(work, mapping.file, "A mapping", &file, error);
        if (!r)
            r = string_hash(work, mapping.build_id, "A mapping", &build_id, error);
        mapping.file = file != work->empty;
        mapping.build_id = build_id != work->empty;
        work->mappings[i] =
            unresolved_mapping_hash(&mapping, mapping.build_id ? build_id : file, work->seed);
    }
    return r;
}

/* Where all frames of a location are. */
static inline uint64_t file_address(const struct pprof_reader *reader,
                                    const struct raw_location *raw)
{
    return raw->mapping
               ? profile_file_offset(&reader->mappings[raw->mapping - 1].mapping, raw->address)
               : raw->address;
}

/* As pprof_resolve.c has it: the last line is the outermost. */
static void digest_locations(struct digesting *work)
{
    struct pprof_reader *reader = work->reader;
    size_t room = reader->line_count + reader->location_count + 1, count = 0;
    work->where = memory_alloc((reader->location_count + 1) * sizeof(*work->where));
    work->frames = memory_alloc(room * sizeof(*work->frames));
    work->single = memory_alloc((reader->location_count + 1) * sizeof(*work->single));
    work->origins = memory_alloc(room * sizeof(*work->origins));
    for (size_t i = 0; i < reader->location_count; i++) {
        const struct raw_location *raw = &reader->locations[i];
        const uint64_t address = file_address(reader, raw),
                       common = unresolved_common(0, raw->folded);
        uint64_t mapping = raw->mapping ? work->mappings[raw->mapping - 1] : work->no_mapping;
        work->where[i] = (struct location_frames){.first = (uint32_t)count,
                                                  .count = raw->line_count ? raw->line_count : 1};
        for (uint32_t k = 0; k < work->where[i].count; k++)
            work->origins[count + k] = (uint32_t)i;
        struct digest digest;
        if (!raw->line_count)
            work->frames[count++] = digest =
                unresolved_digest(address, common, work->no_function, mapping, work->seed);
        for (uint32_t k = raw->line_count; k-- > 0;) {
            const struct raw_line *line = &reader->lines[raw->first_line + k];
            uint64_t function =
                line->function ? work->functions[line->function - 1] : work->no_function;
            work->frames[count++] = digest = unresolved_digest(
                address,
                unresolved_details(common, line->line, line->column, k + 1 < raw->line_count),
                function, mapping, work->seed);
        }
        work->single[i].low = digest.low;
        work->single[i].high = raw->line_count <= 1 ? digest.high : 0;
    }
    work->frame_count = count;
}

/* Goes down a stack from its last location on, as long as locations are one frame; returns how many
 * are left. On its own, so that all stays in registers: each step waits for the one before. */
static __attribute__((noinline)) size_t digest_singles(const struct digest *single,
                                                       const uint32_t *locations, size_t left,
                                                       struct digest *digest)
{
    struct digest parent = *digest;
    for (; left && likely(single[locations[left - 1]].high); left--)
        parent = unresolved_digest_below(parent, single[locations[left - 1]]);
    *digest = parent;
    return left;
}

static int digest_stacks(struct digesting *work, struct digest *digests, uint32_t *ret_deepest,
                         struct error *error)
{
    struct pprof_reader *reader = work->reader;
    uint64_t left = pprof_frame_budget(reader);
    for (size_t i = 0; i < reader->stacks.count; i++) {
        const struct byte_entry *entry = &reader->stacks.entries[i];
        const uint32_t *locations = reader->stack_locations + entry->offset;
        struct digest digest = {0};
        uint64_t depth = entry->length;
        size_t k = entry->length;
        while ((k = digest_singles(work->single, locations, k, &digest))) {
            struct location_frames where = work->where[locations[--k]];
            depth += where.count - 1;
            if (unlikely(depth > left))
                break;
            for (uint32_t f = 0; f < where.count; f++)
                digest = unresolved_digest_below(digest, work->frames[where.first + f]);
        }
        if (unlikely(depth > left))
            return pprof_too_many_frames(entry, error);
        left -= depth;
        digests[i + 1] = digest;
        *ret_deepest = MAX(*ret_deepest, (uint32_t)MIN(depth, (uint64_t)UINT32_MAX));
    }
    return 0;
}

static uint32_t unresolved_stack(struct unresolved_stacks *unresolved, uint32_t stack,
                                 uint32_t *frames)
{
    const struct pprof_unresolved *given = (struct pprof_unresolved *)unresolved;
    if (!stack)
        return 0;
    const struct byte_entry *entry = &given->reader->stacks.entries[stack - 1];
    const uint32_t *locations = given->reader->stack_locations + entry->offset;
    uint32_t count = 0;
    for (uint32_t k = entry->length; k-- > 0;) {
        struct location_frames where = given->where[locations[k]];
        for (uint32_t f = 0; f < where.count; f++)
            frames[count++] = where.first + f;
    }
    return count;
}

static void unresolved_parts(struct unresolved_stacks *unresolved, uint32_t frame,
                             struct unresolved_parts *ret_parts)
{
    const struct pprof_unresolved *given = (struct pprof_unresolved *)unresolved;
    const struct pprof_reader *reader = given->reader;
    uint32_t location = given->origins[frame];
    const struct raw_location *raw = &reader->locations[location];
    uint32_t before = frame - given->where[location].first;
    *ret_parts = (struct unresolved_parts){
        .frame = {.address = file_address(reader, raw), .folded = raw->folded}};
    if (raw->mapping)
        ret_parts->mapping = given->mappings[raw->mapping - 1];
    if (!raw->line_count)
        return;
    uint32_t k = raw->line_count - 1 - before;
    const struct raw_line *line = &reader->lines[raw->first_line + k];
    ret_parts->frame.line = line->line;
    ret_parts->frame.column = line->column;
    ret_parts->frame.inlined = k + 1 < raw->line_count;
    uint64_t function = line->function;
    if (function && given->functions[function - 1] != given->no_function)
        ret_parts->function = given->functions[function - 1];
}

static uint32_t unresolved_frame(struct unresolved_stacks *unresolved, uint32_t frame)
{
    const struct pprof_unresolved *given = (struct pprof_unresolved *)unresolved;
    struct pprof_reader *reader = given->reader;
    uint32_t location = given->origins[frame];
    struct error unused; /* all was checked when it was digested */
    reader->profile = unresolved->profile;
    struct location_frames *frames = &reader->location_frames[location];
    if (!frames->count && pprof_resolve_location(reader, location, &unused) < 0)
        return 0;
    return frames->count == 1
               ? frames->first
               : reader->frames[frames->first + frame - given->where[location].first];
}

static void free_unresolved(struct unresolved_stacks *unresolved)
{
    struct pprof_unresolved *given = (struct pprof_unresolved *)unresolved;
    pprof_reader_free(given->reader);
    free(given->where);
    free(given->origins);
    free(given->functions);
    free(given->mappings);
    free(unresolved->frames);
    free(unresolved->digests);
    free(unresolved);
}

static void give_unresolved(struct pprof_reader *reader, struct digesting *work,
                            struct digest *digests, uint32_t deepest)
{
    struct pprof_unresolved *given = memory_zalloc(1, sizeof(*given));
    given->reader = reader;
    given->unresolved = (struct unresolved_stacks){
        .profile = reader->profile,
        .seed = work->seed,
        .digests = digests,
        .count = (uint32_t)reader->stacks.count + 1,
        .deepest = deepest,
        .frames = work->frames,
        .frame_count = (uint32_t)work->frame_count,
        .stack = unresolved_stack,
        .parts = unresolved_parts,
        .frame = unresolved_frame,
        .free = free_unresolved,
    };
    given->where = TAKE_PTR(work->where);
    given->origins = TAKE_PTR(work->origins);
    given->functions = TAKE_PTR(work->functions);
    given->mappings = TAKE_PTR(work->mappings);
    given->no_function = work->no_function;
    work->frames = NULL;
    reader->profile->unresolved = &given->unresolved;
}

int pprof_resolve_unresolved(struct pprof_reader *reader, uint64_t seed, struct profile *profile,
                             struct error *error)
{
    unsigned columns[PROFILE_TYPES_MAX];
    _cleanup_(digesting_release) struct digesting work = {.reader = reader, .seed = seed};
    struct profile_mapping none = {0};
    work.empty = unresolved_string_hash("", 0, seed);
    work.no_function = unresolved_function_hash(
        (struct unresolved_function){
            .name = work.empty, .system_name = work.empty, .file = work.empty},
        seed);
    work.no_mapping = unresolved_mapping_hash(&none, work.empty, seed);
    work.strings = memory_zalloc(reader->string_count + 1, sizeof(*work.strings));
    reader->alone = true;
    int r = pprof_resolve_head(reader, profile, columns, error);
    if (!r)
        r = hash_mappings(&work, error);
    if (!r)
        r = hash_functions(&work, error);
    if (r < 0)
        return r;
    digest_locations(&work);
    struct digest *digests = memory_zalloc(reader->stacks.count + 1, sizeof(*digests));
    uint32_t deepest = 0;
    r = digest_stacks(&work, digests, &deepest, error);
    if (!r)
        r = pprof_resolve_rows(reader, columns, NULL, error);
    if (r < 0)
        free(digests);
    else
        give_unresolved(reader, &work, digests, deepest);
    return r;
}
