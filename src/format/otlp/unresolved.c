// SPDX-License-Identifier: Apache-2.0
// OTLP's stacks by content, for stores that know most of them: what the frames of a location are is
// hashed once, right from the tables, and a stack's digest is made of its locations'. All indexes
// are checked on the way, so that putting a stack together later can't fail.

#include "profile/unresolved.h"
#include "base/number.h"
#include "format/otlp/model.h"

#define COLUMN_MAX 0xffffffu

struct otlp_unresolved {
    struct unresolved_stacks unresolved;
    struct otlp_model model;
};

void otlp_model_unresolve(struct otlp_model *model, uint64_t seed)
{
    model->unresolved = true;
    model->seed = seed;
    model->empty = unresolved_string_hash("", 0, seed);
}

static uint64_t string_hash(struct otlp_model *model, uint32_t index)
{
    struct otlp_string *string = &model->dictionary.strings[index];
    if (!index || !string->length)
        return model->empty;
    if (!string->hash)
        string->hash = unresolved_string_hash(string->data, string->length, model->seed);
    return string->hash;
}

static struct name_text string_text(const struct otlp_model *model, uint32_t index)
{
    const struct otlp_string *string = &model->dictionary.strings[index];
    return index ? (struct name_text){string->data, string->length} : (struct name_text){"", 0};
}

static uint64_t no_function(const struct otlp_model *model)
{
    return unresolved_function_hash((struct unresolved_function){.name = model->empty,
                                                                 .system_name = model->empty,
                                                                 .file = model->empty},
                                    model->seed);
}

/* UINT64_MAX of an empty one. */
static __attribute__((noinline)) int hash_function(struct otlp_model *model, uint32_t index,
                                                   struct error *error)
{
    struct profile_function names;
    int r = otlp_function_names(model, index, &names, error);
    if (r < 0)
        return r;
    struct unresolved_function function = {.name = string_hash(model, names.name),
                                           .system_name = string_hash(model, names.system_name),
                                           .file = string_hash(model, names.file),
                                           .start_line = names.start_line};
    unresolved_choose_name(&function, string_text(model, names.name),
                           string_text(model, names.system_name), model->seed);
    model->dictionary.function_hashes[index] =
        names.name || names.file ? unresolved_function_hash(function, model->seed) : UINT64_MAX;
    return 0;
}

static inline int function_hash(struct otlp_model *model, uint32_t index, uint64_t *ret_hash,
                                struct error *error)
{
    const struct otlp_dictionary *dictionary = &model->dictionary;
    if (index >= dictionary->function_count || !dictionary->function_hashes[index]) {
        int r = hash_function(model, index, error);
        if (r < 0)
            return r;
    }
    *ret_hash = dictionary->function_hashes[index];
    return 0;
}

static __attribute__((noinline)) int hash_mapping(struct otlp_model *model, uint32_t index,
                                                  struct error *error)
{
    const struct otlp_mapping *raw = &model->dictionary.mappings[index];
    struct profile_mapping mapping = {.start = raw->start, .offset = raw->offset};
    int r = otlp_string_id(model, raw->file, "A mapping", &mapping.file, error);
    if (!r)
        r = otlp_build_id(model, raw->attributes, &mapping.build_id, error);
    if (r < 0)
        return r;
    const struct profile_string *name =
        &model->profile->strings[mapping.build_id ? mapping.build_id : mapping.file];
    model->dictionary.mapping_hashes[index] = unresolved_mapping_hash(
        &mapping, unresolved_string_hash(name->data, name->length, model->seed), model->seed);
    return 0;
}

static inline int mapping_hash(struct otlp_model *model, uint32_t index, uint64_t *ret_hash,
                               struct error *error)
{
    const struct otlp_dictionary *dictionary = &model->dictionary;
    if (!dictionary->mapping_hashes[index]) {
        int r = hash_mapping(model, index, error);
        if (r < 0)
            return r;
    }
    *ret_hash = dictionary->mapping_hashes[index];
    return 0;
}

/* There is room for all frames that locations can be: see prepare(). */
static inline void add_digest(struct otlp_dictionary *dictionary, uint32_t location,
                              struct digest digest)
{
    size_t at = dictionary->frame_digest_count++;
    dictionary->frame_origins[at] = location;
    dictionary->frame_digests[at] = digest;
}

/* The hash of a line's function: 0 when it is empty, so that it isn't a frame. */
static inline int line_function(struct otlp_model *model, const struct otlp_line *line,
                                uint64_t *ret_function, struct error *error)
{
    *ret_function = 0;
    int r = line->function ? function_hash(model, line->function, ret_function, error) : 0;
    if (r < 0 || *ret_function == UINT64_MAX)
        *ret_function = 0;
    return r;
}

/* As otlp_resolve.c has it: the last line is the outermost. */
static __attribute__((noinline)) int digest_location(struct otlp_model *model, uint32_t index,
                                                     struct error *error)
{
    struct otlp_dictionary *dictionary = &model->dictionary;
    int r = otlp_check_location(model, index, error);
    if (r < 0)
        return r;
    const struct otlp_location *location = &dictionary->locations[index];
    const size_t first = dictionary->frame_digest_count;
    struct profile_frame frame;
    r = otlp_location_base(model, location, &frame, error);
    const uint64_t common = unresolved_common(frame.kind, frame.folded);
    struct digest digest = {0};
    uint64_t function, mapping = dictionary->mapping_hashes[0];
    bool inlined = false;
    if (!r && location->mapping)
        r = mapping_hash(model, location->mapping, &mapping, error);
    for (uint32_t i = location->lines.count; !r && i-- > 0;) {
        const struct otlp_line *line = &dictionary->lines[location->lines.first + i];
        r = line_function(model, line, &function, error);
        if (!function)
            continue;
        uint64_t details =
            unresolved_details(common, line->line, MIN(line->column, COLUMN_MAX), inlined);
        digest = unresolved_digest(frame.address, details, function, mapping, model->seed);
        add_digest(dictionary, index, digest);
        inlined = true;
    }
    if (r < 0) {
        dictionary->frame_digest_count = first;
        return r;
    }
    if (first == dictionary->frame_digest_count) {
        digest = unresolved_digest(frame.address, common, no_function(model), mapping, model->seed);
        add_digest(dictionary, index, digest);
    }
    uint32_t count = (uint32_t)(dictionary->frame_digest_count - first);
    dictionary->location_digests[index] =
        (struct otlp_range){.first = (uint32_t)first, .count = count};
    if (count == 1)
        dictionary->single_digests[index] = digest;
    return 0;
}

static void prepare(struct otlp_model *model)
{
    struct otlp_dictionary *dictionary = &model->dictionary;
    /* Each line is a frame at most, and a location without lines is one. */
    size_t frames = dictionary->location_count + dictionary->line_count + 1;
    dictionary->frame_digests = memory_alloc(frames * sizeof(*dictionary->frame_digests));
    dictionary->frame_origins = memory_alloc(frames * sizeof(*dictionary->frame_origins));
    struct profile_mapping none = {0};
    dictionary->function_hashes = memory_zalloc(dictionary->function_count + 1, sizeof(uint64_t));
    dictionary->mapping_hashes = memory_zalloc(dictionary->mapping_count + 1, sizeof(uint64_t));
    dictionary->mapping_hashes[0] = unresolved_mapping_hash(&none, model->empty, model->seed);
    dictionary->location_digests =
        memory_zalloc(dictionary->location_count + 1, sizeof(*dictionary->location_digests));
    dictionary->single_digests =
        memory_zalloc(dictionary->location_count + 1, sizeof(*dictionary->single_digests));
    dictionary->stack_digests =
        memory_zalloc(dictionary->stack_count + 1, sizeof(*dictionary->stack_digests));
}

/* Nearly all locations are of some stack, and are digested in the order they are in. One that is
 * damaged matters if a stack has it, which is found out then, and of those after it, too. */
static void digest_locations(struct otlp_model *model)
{
    struct error unused;
    int r = 0;
    prepare(model);
    for (size_t i = 1; !r && i < model->dictionary.location_count; i++)
        r = digest_location(model, (uint32_t)i, &unused);
}

/* Goes down a stack from its last location on, as long as locations are one frame; returns how many
 * are left. On its own, so that all stays in registers. */
static __attribute__((noinline)) size_t digest_singles(const struct digest *single, size_t count,
                                                       const uint32_t *locations, size_t left,
                                                       struct digest *digest)
{
    struct digest parent = *digest;
    for (; left; left--) {
        uint32_t location = locations[left - 1];
        if (unlikely(location >= count || !single[location].high))
            break;
        parent = unresolved_digest_below(parent, single[location]);
    }
    *digest = parent;
    return left;
}

/* A location that is several frames, none, or damaged. */
static int digest_below(struct otlp_model *model, uint32_t location, struct digest *digest,
                        uint64_t *depth, struct error *error)
{
    const struct otlp_dictionary *dictionary = &model->dictionary;
    if (!location)
        return 0;
    if (location >= dictionary->location_count || !dictionary->location_digests[location].count) {
        int r = digest_location(model, location, error);
        if (r < 0)
            return r;
    }
    struct otlp_range range = dictionary->location_digests[location];
    *depth += range.count;
    if (*depth > model->frame_budget) /* before more time is spent than the input is worth */
        return otlp_spend(model, &model->frame_budget, *depth, "stacks", error);
    for (uint32_t i = 0; i < range.count; i++)
        *digest = unresolved_digest_below(*digest, dictionary->frame_digests[range.first + i]);
    return 0;
}

static int digest_stack(struct otlp_model *model, uint32_t index, struct error *error)
{
    const struct otlp_dictionary *dictionary = &model->dictionary;
    const struct otlp_range stack = dictionary->stacks[index];
    /* There are no indices where no stack has a location. */
    const uint32_t *locations = stack.count ? dictionary->indices + stack.first : NULL;
    struct digest digest = {0};
    uint64_t depth = stack.count; /* as if all were one frame */
    for (size_t left = stack.count;
         (left = digest_singles(dictionary->single_digests, dictionary->location_count, locations,
                                left, &digest));
         left--) {
        depth--;
        int r = digest_below(model, locations[left - 1], &digest, &depth, error);
        if (r < 0)
            return r;
    }
    /* A few bytes can name a location of many lines many times. */
    int r = otlp_spend(model, &model->frame_budget, depth, "stacks", error);
    model->deepest = MAX(model->deepest, (uint32_t)MIN(depth, (uint64_t)UINT32_MAX));
    digest.low |= !digest.high; /* looked at, and nothing there */
    dictionary->stack_digests[index] = digest;
    return r;
}

int otlp_digest_stacks(struct otlp_model *model, struct error *error)
{
    const struct otlp_dictionary *dictionary = &model->dictionary;
    int r = 0;
    digest_locations(model);
    for (size_t i = 0; !r && i < model->row_count; i++) {
        uint32_t stack = model->rows[i].stack;
        if (!stack)
            continue;
        if (stack >= dictionary->stack_count)
            return otlp_bad_index(error, "A sample", "stack", stack, dictionary->stack_count);
        struct digest known = dictionary->stack_digests[stack];
        if (!(known.high | known.low))
            r = digest_stack(model, stack, error);
    }
    return r;
}

static uint32_t unresolved_stack(struct unresolved_stacks *unresolved, uint32_t stack,
                                 uint32_t *frames)
{
    const struct otlp_dictionary *dictionary =
        &((struct otlp_unresolved *)unresolved)->model.dictionary;
    if (!stack)
        return 0;
    struct otlp_range range = dictionary->stacks[stack];
    uint32_t count = 0;
    for (uint32_t i = range.count; i-- > 0;) {
        uint32_t location = dictionary->indices[range.first + i];
        if (!location)
            continue;
        const struct otlp_range digests = dictionary->location_digests[location];
        for (uint32_t k = 0; k < digests.count; k++)
            frames[count++] = digests.first + k;
    }
    return count;
}

/* All was checked when it was digested, so that nothing can fail. */
static void unresolved_parts(struct unresolved_stacks *unresolved, uint32_t index,
                             struct unresolved_parts *ret_parts)
{
    struct otlp_model *model = &((struct otlp_unresolved *)unresolved)->model;
    const struct otlp_dictionary *dictionary = &model->dictionary;
    uint32_t origin = dictionary->frame_origins[index];
    uint32_t before = index - dictionary->location_digests[origin].first;
    const struct otlp_location *location = &dictionary->locations[origin];
    struct profile_frame frame;
    uint64_t function = 0, mapping = 0;
    struct error unused;
    otlp_location_base(model, location, &frame, &unused);
    if (location->mapping)
        mapping_hash(model, location->mapping, &mapping, &unused);
    for (uint32_t i = location->lines.count; i-- > 0;) {
        const struct otlp_line *line = &dictionary->lines[location->lines.first + i];
        line_function(model, line, &function, &unused);
        frame.line = line->line;
        frame.column = MIN(line->column, COLUMN_MAX);
        if (function && !before--)
            break;
        frame.inlined |= function != 0;
    }
    if (!function)
        frame.line = frame.column = 0;
    *ret_parts =
        (struct unresolved_parts){.frame = frame, .function = function, .mapping = mapping};
}

static uint32_t unresolved_frame(struct unresolved_stacks *unresolved, uint32_t frame)
{
    struct otlp_model *model = &((struct otlp_unresolved *)unresolved)->model;
    struct otlp_dictionary *dictionary = &model->dictionary;
    uint32_t location = dictionary->frame_origins[frame];
    struct error unused; /* all was checked when it was digested */
    model->profile = unresolved->profile;
    if (otlp_resolve_location(model, location, &unused) < 0)
        return 0;
    return dictionary->frames[dictionary->location_frames[location].first + frame -
                              dictionary->location_digests[location].first];
}

static void free_unresolved(struct unresolved_stacks *unresolved)
{
    otlp_model_release(&((struct otlp_unresolved *)unresolved)->model);
    free(unresolved);
}

void otlp_give_unresolved(struct otlp_model *model)
{
    struct otlp_unresolved *given = memory_alloc(sizeof(*given));
    given->unresolved = (struct unresolved_stacks){
        .profile = model->profile,
        .seed = model->seed,
        .digests = model->dictionary.stack_digests,
        .count = (uint32_t)MAX(model->dictionary.stack_count, (size_t)1),
        .deepest = model->deepest,
        .frames = model->dictionary.frame_digests,
        .frame_count = (uint32_t)model->dictionary.frame_digest_count,
        .stack = unresolved_stack,
        .parts = unresolved_parts,
        .frame = unresolved_frame,
        .free = free_unresolved,
    };
    given->model = *model;
    *model = (struct otlp_model){0};
    given->model.profile->unresolved = &given->unresolved;
}
