// SPDX-License-Identifier: Apache-2.0
// Profiles of the Firefox Profiler: from its tables to samples. See docs/formats/firefox.md.

#include "format/firefox/firefox.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"

/* The tables that a thread uses: its own, or the shared ones. */
struct view {
    const struct firefox_tables *strings, *stacks, *frames, *functions, *sources;
};

static struct view view_of(const struct firefox *file, const struct firefox_thread *thread)
{
    const struct firefox_tables *own = &thread->tables, *shared = &file->shared;
    return (struct view){
        .strings = own->has_strings ? own : shared,
        .stacks = own->has_stacks ? own : shared,
        .frames = own->has_frames ? own : shared,
        .functions = own->has_functions ? own : shared,
        .sources = own->has_sources ? own : shared,
    };
}

static bool at(const struct firefox_column *column, int64_t index, int64_t *ret_value)
{
    if (index < 0 || (uint64_t)index >= column->count)
        return false;
    *ret_value = column->values[index];
    return true;
}

static bool string_at(const struct view *view, int64_t index, uint32_t *ret_string)
{
    if (index < 0 || (uint64_t)index >= view->strings->string_count)
        return false;
    *ret_string = view->strings->strings[index];
    return true;
}

static uint32_t line_of(int64_t line)
{
    return line > 0 && line < UINT32_MAX ? (uint32_t)line : 0;
}

/* Old versions of Firefox began the names of entries into scripts with a word, which the Firefox
 * Profiler leaves out as newer versions do: "setTimeout handler". */
#define ENTRY_WORD "AutoEntryScript "

static uint32_t entry_name(struct profile *profile, uint32_t name)
{
    struct profile_string text = profile->strings[name];
    size_t skipped = strlen(ENTRY_WORD);
    return text.length > skipped && !memcmp(text.data, ENTRY_WORD, skipped)
               ? profile_string(profile, text.data + skipped, text.length - skipped)
               : name;
}

/* Gecko's form has the place in the name, and so have the first processed ones: "f
 * (http://x/y.js:12:3)".
 */
static void split_location(struct profile *profile, uint32_t location,
                           struct profile_function *function, uint32_t *line)
{
    struct profile_string text = profile->strings[location];
    const char *end = text.data + text.length;
    function->name = entry_name(profile, location);
    if (!text.length || end[-1] != ')')
        return;
    const char *open = memrchr(text.data, '(', text.length);
    if (!open || open <= text.data + 1 || open[-1] != ' ')
        return;
    uint32_t first = 0, second = 0;
    const char *inner = open + 1, *close = end - 1;
    const char *mark = text_number_before(inner, close, &first);
    const char *other = mark ? text_number_before(inner, mark, &second) : NULL;
    if (!mark || mark == inner)
        return;
    function->file = profile_string(profile, inner, (size_t)((other ? other : mark) - inner));
    function->name = profile_string(profile, text.data, (size_t)(open - text.data) - 1);
    if (!*line)
        *line = other ? second : first;
}

static int intern_frame(struct firefox *file, const struct view *view, int64_t index,
                        uint32_t *ret_frame)
{
    struct profile *profile = file->profile;
    struct profile_function function = {0};
    int64_t number = FIREFOX_NONE, line = FIREFOX_NONE, text;
    at(&view->frames->frame_line, index, &line);
    uint32_t row = line_of(line);
    if (at(&view->frames->frame_function, index, &number) && number != FIREFOX_NONE) {
        if (!at(&view->functions->function_name, number, &text) ||
            !string_at(view, text, &function.name))
            return json_fail(&file->json, "Function %lld has no name before the end",
                             (long long)number);
        int64_t source;
        if (!view->functions->function_file.count && !view->functions->function_source.count)
            split_location(profile, function.name, &function, &row);
        else
            function.name = entry_name(profile, function.name);
        if (at(&view->functions->function_file, number, &text) && text != FIREFOX_NONE)
            string_at(view, text, &function.file);
        else if (at(&view->functions->function_source, number, &source) &&
                 at(&view->sources->source_file, source, &text))
            string_at(view, text, &function.file);
    } else if (at(&view->frames->frame_location, index, &number)) {
        uint32_t location;
        if (!string_at(view, number, &location))
            return json_fail(&file->json, "Frame %lld has no location before the end",
                             (long long)index);
        split_location(profile, location, &function, &row);
    } else {
        return json_fail(&file->json,
                         "A stack refers to frame %lld, which is not there, before the end",
                         (long long)index);
    }
    struct profile_frame frame = {.function = profile_function(profile, &function), .line = row};
    *ret_frame = profile_frame(profile, &frame);
    return 0;
}

/* The caller of a stack; FIREFOX_NONE: it is a root. */
static int64_t prefix_of(const struct firefox_tables *stacks, size_t i)
{
    int64_t prefix = FIREFOX_NONE, offset;
    if (at(&stacks->stack_prefix_offset, (int64_t)i, &offset) && offset != FIREFOX_NONE)
        return offset > 0 && (uint64_t)offset <= i ? (int64_t)i - offset
               : offset                            ? -1
                                                   : FIREFOX_NONE;
    at(&stacks->stack_prefix, (int64_t)i, &prefix);
    return prefix;
}

/* The node of each stack. A stack's prefix comes before it. */
static int intern_stacks(struct firefox *file, const struct view *view, uint32_t *nodes)
{
    const struct firefox_tables *stacks = view->stacks;
    size_t frame_count =
        MAX(view->frames->frame_function.count, view->frames->frame_location.count);
    _cleanup_free_ uint32_t *frames = memory_zalloc(frame_count + 1, sizeof(*frames));
    for (size_t i = 0; i < stacks->stack_frame.count; i++) {
        int64_t index = stacks->stack_frame.values[i], prefix = prefix_of(stacks, i);
        if (prefix != FIREFOX_NONE && (prefix < 0 || (uint64_t)prefix >= i))
            return json_fail(&file->json, "Stack %zu comes before its caller, before the end", i);
        if (index < 0 || (uint64_t)index >= frame_count)
            return json_fail(&file->json, "Stack %zu has no frame before the end", i);
        if (!frames[index]) {
            int r = intern_frame(file, view, index, &frames[index]);
            if (r < 0)
                return r;
        }
        nodes[i] =
            profile_child(file->profile, prefix == FIREFOX_NONE ? 0 : nodes[prefix], frames[index]);
        if (profile_full(file->profile))
            return json_fail(&file->json, "There are more stacks than a profile can hold");
    }
    return 0;
}

/* ---- samples ---- */

struct types {
    unsigned samples, wall, cpu, bytes;
};

static int add_type(struct firefox *file, const char *type, const char *unit, unsigned *ret_type)
{
    struct profile *profile = file->profile;
    *ret_type =
        profile_type(profile, profile_cstring(profile, type), profile_cstring(profile, unit));
    return *ret_type == PROFILE_TYPES_MAX
               ? error_set(file->json.error, -E2BIG,
                           "Together the profiles have more than %d sample types.",
                           PROFILE_TYPES_MAX)
               : 0;
}

static uint32_t thread_labels(struct firefox *file, const struct firefox_thread *thread)
{
    struct profile *profile = file->profile;
    struct profile_label labels[4];
    size_t count = 0;
    if (!(profile->detail & PROFILE_LABELS))
        return 0;
    if (thread->name)
        labels[count++] =
            (struct profile_label){.key = profile_cstring(profile, "thread"), .text = thread->name};
    if (thread->process_name)
        labels[count++] = (struct profile_label){.key = profile_cstring(profile, "process"),
                                                 .text = thread->process_name};
    if (thread->pid != FIREFOX_NONE)
        labels[count++] =
            (struct profile_label){.key = profile_cstring(profile, "pid"), .number = thread->pid};
    if (thread->tid != FIREFOX_NONE)
        labels[count++] =
            (struct profile_label){.key = profile_cstring(profile, "tid"), .number = thread->tid};
    return count ? profile_label_set(profile, labels, count) : 0;
}

static int add_weight(struct firefox *file, const struct firefox_thread *thread,
                      const struct types *types, size_t row, size_t i)
{
    struct profile *profile = file->profile;
    int64_t weight = 1000000, ns; /* in millionths, as it was read */
    const char *unit = profile_text(profile, thread->weight_unit);
    if (i < thread->weight.count && thread->weight.values[i] != FIREFOX_NONE)
        weight = thread->weight.values[i];
    if (!strcmp(unit, "bytes")) {
        profile_add_value(profile, row, types->bytes, weight / 1000000);
        return 0;
    }
    bool milliseconds = !strcmp(unit, "tracing-ms");
    if (milliseconds)
        ns = weight;
    else if (__builtin_mul_overflow(weight / 1000000, file->interval_ns, &ns))
        ns = INT64_MAX;
    profile_add_value(profile, row, types->samples, milliseconds ? 1 : weight / 1000000);
    profile_add_value(profile, row, types->wall, ns);
    int64_t cpu = FIREFOX_NONE;
    if (file->cpu_scale && at(&thread->cpu, (int64_t)i, &cpu) && cpu > 0) {
        if (__builtin_mul_overflow(cpu, file->cpu_scale, &cpu))
            cpu = INT64_MAX;
        profile_add_value(profile, row, types->cpu, cpu);
    }
    return 0;
}

static int add_thread(struct firefox *file, const struct firefox_thread *thread,
                      const struct types *types)
{
    struct view view = view_of(file, thread);
    size_t stack_count = view.stacks->stack_frame.count;
    _cleanup_free_ uint32_t *nodes = memory_zalloc(stack_count + 1, sizeof(*nodes));
    uint32_t labels = thread_labels(file, thread);
    int r = thread->stack.count ? intern_stacks(file, &view, nodes) : 0;
    uint64_t clock = 0;
    for (size_t i = 0; i < thread->stack.count && r == 0; i++) {
        int64_t stack = thread->stack.values[i], time = FIREFOX_NONE;
        if (at(&thread->time_ns, (int64_t)i, &time) && time != FIREFOX_NONE)
            clock = thread->delta_times ? clock + (uint64_t)time : (uint64_t)time;
        if (stack == FIREFOX_NONE) /* nothing ran */
            continue;
        if (stack < 0 || (uint64_t)stack >= stack_count)
            return json_fail(&file->json,
                             "Sample %zu refers to a stack that is not there, before the end", i);
        uint64_t when = time == FIREFOX_NONE ? 0 : (uint64_t)file->start_ns + clock;
        size_t row = profile_sample(file->profile, nodes[stack], labels, 0, when);
        r = add_weight(file, thread, types, row, i);
        if (profile_full(file->profile))
            r = json_fail(&file->json, "There are more samples than a profile can hold");
    }
    return r;
}

static bool uses(const struct firefox *file, const char *unit)
{
    for (size_t i = 0; i < file->thread_count; i++)
        if (!strcmp(profile_text(file->profile, file->threads[i]->weight_unit), unit))
            return true;
    return false;
}

static int resolve(struct firefox *file)
{
    struct types types = {0};
    int r = add_type(file, "samples", "count", &types.samples);
    if (r == 0 && file->cpu_scale)
        r = add_type(file, "cpu", "nanoseconds", &types.cpu);
    if (r == 0 && uses(file, "bytes"))
        r = add_type(file, "alloc_space", "bytes", &types.bytes);
    if (r == 0)
        r = add_type(file, "wall", "nanoseconds", &types.wall);
    for (size_t i = 0; i < file->thread_count && r == 0; i++)
        r = add_thread(file, file->threads[i], &types);
    if (r == 0)
        profile_note_source(file->profile, file->start_ns, 0);
    return r;
}

static void firefox_release(struct firefox *file)
{
    for (size_t i = 0; i < file->thread_count; i++) {
        struct firefox_thread *thread = file->threads[i];
        firefox_tables_release(&thread->tables);
        free(thread->stack.values);
        free(thread->weight.values);
        free(thread->time_ns.values);
        free(thread->cpu.values);
        free(thread);
    }
    free(file->threads);
    firefox_tables_release(&file->shared);
    json_release(&file->json);
}

static int firefox_read(struct source *source, struct profile *profile, struct error *error)
{
    _cleanup_(firefox_release) struct firefox file = {.profile = profile, .interval_ns = 1000000};
    json_init(&file.json, source, error);
    if (json_kind(&file.json) != JSON_OBJECT)
        return json_fail(&file.json, "The file is not an object");
    int r = firefox_read_profile(&file, 0);
    if (r >= 0)
        r = json_end(&file.json);
    if (r >= 0 && !file.thread_count)
        r = json_fail(&file.json, "The file has no threads before its end");
    if (r >= 0 && file.interval_ns < 0)
        file.interval_ns = 0;
    return r < 0 ? r : resolve(&file);
}

static int firefox_detect(const uint8_t *bytes, size_t length)
{
#define HAS(key) json_sniff_key(bytes, length, key)
    if (!json_sniff_object(bytes, length))
        return 0;
    if (HAS("preprocessedProfileVersion"))
        return FORMAT_CERTAIN;
    if (HAS("meta") && HAS("interval") && (HAS("processType") || HAS("stackwalk")))
        return FORMAT_CERTAIN;
    /* A recording of developer tools before version 98 has Gecko's form as its "profile". */
    if (HAS("label") && HAS("duration") && HAS("markers"))
        return FORMAT_CERTAIN;
    return HAS("stackTable") && HAS("frameTable") ? FORMAT_CERTAIN : 0;
#undef HAS
}

const struct format format_firefox = {
    .name = "firefox",
    .text = true,
    .summary = "the Firefox Profiler's JSON, also of samply",
    .extensions = ".firefox.json .firefox.json.gz",
    .detail = PROFILE_LINES | PROFILE_LABELS | PROFILE_TIMES,
    .write = firefox_write,
    .detect = firefox_detect,
    .read = firefox_read,
};
