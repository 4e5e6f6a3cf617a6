// SPDX-License-Identifier: Apache-2.0
// Massif's output: snapshots of the heap, some with a tree of who allocated. See
// docs/formats/massif.md.

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "format/format.h"

#define DEPTH_MAX 1000

struct level { /* a line of the tree that is still open */
    uint32_t frame;
    int64_t bytes;    /* of it */
    int64_t children; /* of the lines below it so far */
};

/* The stacks of one snapshot, as they wait for a larger one. */
struct stack {
    size_t first; /* in `frames`: outermost first */
    size_t count;
    int64_t bytes;
};

struct massif {
    struct profile *profile;
    struct error *error;
    uint64_t line;
    struct level levels[DEPTH_MAX];
    size_t depth;
    bool in_tree;
    int64_t heap_bytes;                       /* of the snapshot at hand */
    uint64_t stacks_bytes, best_stacks_bytes; /* the threads' stacks, at hand and of the best */
    bool peak, has_peak;                      /* it is the peak; a peak was seen */
    int64_t best_bytes;                       /* of the snapshot that the stacks are of */
    bool has_best;
    struct stack *stacks;
    size_t stack_count, stack_capacity;
    uint32_t *frames;
    size_t frame_count, frame_capacity;
};

static int fail_at(struct massif *file, const char *problem)
{
    return error_set(file->error, -EBADMSG, "%s in line %llu.", problem,
                     (unsigned long long)file->line);
}

/* "0x4005BB: function (file.c:12)", "... (in /lib/libx.so)", or words. */
static uint32_t frame_of(struct massif *file, const char *text, size_t length)
{
    struct profile *profile = file->profile;
    struct profile_function function = {0};
    struct profile_frame frame = {.kind = FRAME_NATIVE};
    const char *end = text + length;
    const char *colon = memchr(text, ':', length);
    if (length > 2 && text[0] == '0' && text[1] == 'x' && colon) {
        text = colon + 1;
        while (text < end && *text == ' ')
            text++;
    }
    const char *open = NULL;
    if (text < end && end[-1] == ')')
        for (const char *at = end - 1; at > text && !open; at--)
            if (at[-1] == ' ' && at[0] == '(')
                open = at;
    if (open) {
        const char *inner = open + 1, *close = end - 1;
        uint32_t row = 0;
        const char *mark = text_number_before(inner, close, &row);
        if (close - inner > 3 && !memcmp(inner, "in ", 3))
            frame.mapping = profile_mapping(
                profile,
                &(struct profile_mapping){
                    .file = profile_string(profile, inner + 3, (size_t)(close - inner) - 3)});
        else if (mark)
            function.file = profile_string(profile, inner, (size_t)(mark - inner)),
            frame.line = row;
        if (frame.mapping || mark)
            end = open - 1;
    }
    function.name = profile_string(profile, text, (size_t)(end - text));
    frame.function = profile_function(profile, &function);
    return profile_frame(profile, &frame);
}

/* The amount of a line beyond the lines below it is a stack of its own. */
static void close_level(struct massif *file)
{
    const struct level *level = &file->levels[--file->depth];
    int64_t own = level->bytes - level->children;
    if (own <= 0)
        return;
    array_reserve(file->stacks, file->stack_capacity, file->stack_count + 1);
    array_reserve(file->frames, file->frame_capacity, file->frame_count + file->depth + 1);
    struct stack *stack = &file->stacks[file->stack_count++];
    *stack = (struct stack){.first = file->frame_count, .bytes = own};
    /* The tree begins with who allocates; its root is only a title. */
    for (size_t i = file->depth; i >= 1; i--)
        file->frames[file->frame_count++] = file->levels[i].frame;
    stack->count = file->frame_count - stack->first;
}

/* " n2: 1024 0x...: f (a.c:3)": the blanks before it say how deep it is. */
static int take_tree_line(struct massif *file, const char *line, size_t length)
{
    size_t depth = 0;
    while (depth < length && line[depth] == ' ')
        depth++;
    const char *at = line + depth, *end = line + length;
    const char *colon = memchr(at, ':', (size_t)(end - at));
    if (!colon || *at != 'n')
        return fail_at(file, "Malformed line of a heap tree");
    const char *number = colon + 1;
    while (number < end && *number == ' ')
        number++;
    const char *space = memchr(number, ' ', (size_t)(end - number));
    uint64_t bytes;
    if (!space || !text_to_u64(number, (size_t)(space - number), &bytes) || bytes > INT64_MAX)
        return fail_at(file, "A line of a heap tree has no size");
    if (depth > file->depth || depth >= DEPTH_MAX)
        return fail_at(file, "A line of a heap tree is too far to the right");
    while (file->depth > depth)
        close_level(file);
    if (depth)
        file->levels[depth - 1].children =
            add_saturated(file->levels[depth - 1].children, (int64_t)bytes);
    file->levels[depth] =
        (struct level){.frame = depth ? frame_of(file, space + 1, (size_t)(end - space) - 1) : 0,
                       .bytes = (int64_t)bytes};
    file->depth = depth + 1;
    return 0;
}

static void end_tree(struct massif *file)
{
    while (file->depth)
        close_level(file);
    file->in_tree = false;
}

/* The snapshot of the peak counts, or else the largest one with a tree. */
static bool begin_tree(struct massif *file)
{
    if (file->has_best && !file->peak && (file->has_peak || file->heap_bytes <= file->best_bytes))
        return false;
    file->has_best = true;
    file->has_peak |= file->peak;
    file->best_bytes = file->heap_bytes;
    file->best_stacks_bytes = file->stacks_bytes;
    file->stack_count = file->frame_count = 0;
    return true;
}

static bool begins(const char *line, size_t length, const char *prefix)
{
    return length >= strlen(prefix) && !memcmp(line, prefix, strlen(prefix));
}

static int take_line(struct massif *file, const char *line, size_t length)
{
    size_t blanks = 0;
    while (blanks < length && line[blanks] == ' ')
        blanks++;
    bool is_tree = blanks < length && line[blanks] == 'n' && blanks + 1 < length &&
                   line[blanks + 1] >= '0' && line[blanks + 1] <= '9';
    if (is_tree)
        return file->in_tree ? take_tree_line(file, line, length) : 0;
    if (file->in_tree)
        end_tree(file);
    uint64_t value;
    if (begins(line, length, "mem_heap_B=")) {
        if (!text_to_u64(line + 11, length - 11, &value))
            return fail_at(file, "Malformed heap size");
        file->heap_bytes = (int64_t)MIN(value, (uint64_t)INT64_MAX);
    } else if (begins(line, length, "mem_stacks_B=")) {
        if (!text_to_u64(line + 13, length - 13, &file->stacks_bytes))
            return fail_at(file, "Malformed size of stacks");
    } else if (begins(line, length, "heap_tree=")) {
        file->peak = begins(line, length, "heap_tree=peak");
        if (file->peak || begins(line, length, "heap_tree=detailed"))
            file->in_tree = begin_tree(file);
    }
    return 0;
}

static void massif_release(struct massif **file)
{
    free((*file)->stacks);
    free((*file)->frames);
    free(*file);
}

static int massif_read(struct source *source, struct profile *profile, struct error *error)
{
    _cleanup_(massif_release) struct massif *file = memory_zalloc(1, sizeof(*file));
    file->profile = profile;
    file->error = error;
    const char *line;
    size_t length;
    int r;
    while ((r = source_line(source, &line, &length, error)) > 0) {
        file->line++;
        r = take_line(file, line, length);
        if (r < 0)
            return r;
        if (profile_full(profile))
            return fail_at(file, "There are more frames than a profile can hold");
    }
    if (r < 0)
        return r;
    end_tree(file);
    if (!file->has_best)
        return error_set(
            error, -EBADMSG,
            "The file has no snapshot with a heap tree: record with --detailed-freq=1.");
    unsigned type = profile_type(profile, profile_cstring(profile, "inuse_space"),
                                 profile_cstring(profile, "bytes"));
    if (type == PROFILE_TYPES_MAX)
        return error_set(error, -E2BIG, "Together the profiles have more than %d sample types.",
                         PROFILE_TYPES_MAX);
    for (size_t i = 0; i < file->stack_count; i++) {
        const struct stack *stack = &file->stacks[i];
        uint32_t node = profile_stack(profile, file->frames + stack->first, stack->count);
        profile_add_value(profile, profile_sample(profile, node, 0, 0, 0), type, stack->bytes);
    }
    if (file->best_stacks_bytes)
        snprintf(source->warning, sizeof(source->warning),
                 "%llu bytes of the threads' stacks at the peak are not shown: massif doesn't say "
                 "which functions use them.",
                 (unsigned long long)file->best_stacks_bytes);
    profile_note_source(profile, 0, 0);
    return 0;
}

static int massif_detect(const uint8_t *bytes, size_t length)
{
#define HAS(word) memmem(bytes, length, word, strlen(word))
    return length > 5 && !memcmp(bytes, "desc:", 5) && HAS("\ncmd:") && HAS("\ntime_unit:")
               ? FORMAT_CERTAIN
               : 0;
#undef HAS
}

const struct format format_massif = {
    .name = "massif",
    .text = true,
    .summary = "massif.out of Valgrind: the heap at its peak",
    .extensions = "",
    .detect = massif_detect,
    .read = massif_read,
};
