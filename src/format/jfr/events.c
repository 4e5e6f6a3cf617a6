// SPDX-License-Identifier: Apache-2.0
// Events become samples. Which events there are, and which fields they have, differs between JVMs,
// their versions and async-profiler; what is known here is bound by name, the rest is skipped.
// See jfr.h and docs/formats/jfr.md.

#include "format/jfr/jfr.h"

#include <string.h>

#include "base/memory.h"

/* When the recording doesn't say how often it sampled. The JDK's default.jfc asks for 20 ms;
 * async-profiler writes 0 for its own default, 10 ms, and takes 50 ms for wall clocks. */
#define JDK_PERIOD_NS 20000000
#define ASYNC_PERIOD_NS 10000000
#define ASYNC_WALL_PERIOD_NS 50000000

enum slot {
    SLOT_START = 1,
    SLOT_DURATION,
    SLOT_THREAD,
    SLOT_STACK,
    SLOT_STATE,
    SLOT_CLASS,
    SLOT_WEIGHT,
    SLOT_TLAB_SIZE,
    SLOT_ALLOCATION_SIZE,
    SLOT_SIZE,
    SLOT_SAMPLES,
    SLOT_SAMPLING_PERIOD,
    SLOT_CONTEXT,
    SLOT_SPAN,
    SLOT_SPAN_NAME,
    SLOT_SETTING_ID,
    SLOT_SETTING_NAME,
    SLOT_SETTING_VALUE,
};

static const struct jfr_binding bindings[] = {
    {"startTime", SLOT_START},
    {"duration", SLOT_DURATION},
    {"eventThread", SLOT_THREAD},
    {"sampledThread", SLOT_THREAD},
    {"stackTrace", SLOT_STACK},
    {"state", SLOT_STATE},
    {"objectClass", SLOT_CLASS},
    {"monitorClass", SLOT_CLASS},
    {"parkedClass", SLOT_CLASS},
    {"weight", SLOT_WEIGHT},
    {"tlabSize", SLOT_TLAB_SIZE},
    {"allocationSize", SLOT_ALLOCATION_SIZE},
    {"size", SLOT_SIZE},
    {"samples", SLOT_SAMPLES},
    {"samplingPeriod", SLOT_SAMPLING_PERIOD},
    {"contextId", SLOT_CONTEXT},
    {"spanId", SLOT_SPAN},
    {"spanName", SLOT_SPAN_NAME},
    {"id", SLOT_SETTING_ID},
    {"name", SLOT_SETTING_NAME},
    {"value", SLOT_SETTING_VALUE},
};

enum event_kind {
    EVENT_SETTING,
    EVENT_EXECUTION,
    EVENT_CPU_TIME,
    EVENT_WALL,
    EVENT_NATIVE,
    EVENT_ALLOC_NEW_TLAB,
    EVENT_ALLOC_OUTSIDE_TLAB,
    EVENT_ALLOC_SAMPLE,
    EVENT_LOCK,
    EVENT_PARK,
    EVENT_LIVE,
    EVENT_MALLOC,
    EVENT_KINDS,
};

static const struct {
    const char *class;
    enum jfr_family family; /* not of settings; execution samples may also be wall or counter */
} kinds[EVENT_KINDS] = {
    [EVENT_SETTING] = {"jdk.ActiveSetting", JFR_FAMILIES},
    [EVENT_EXECUTION] = {"jdk.ExecutionSample", JFR_CPU},
    [EVENT_CPU_TIME] = {"jdk.CPUTimeSample", JFR_CPU},
    [EVENT_WALL] = {"profiler.WallClockSample", JFR_WALL},
    [EVENT_NATIVE] = {"jdk.NativeMethodSample", JFR_NATIVE},
    [EVENT_ALLOC_NEW_TLAB] = {"jdk.ObjectAllocationInNewTLAB", JFR_ALLOC_NEW_TLAB},
    [EVENT_ALLOC_OUTSIDE_TLAB] = {"jdk.ObjectAllocationOutsideTLAB", JFR_ALLOC_OUTSIDE_TLAB},
    [EVENT_ALLOC_SAMPLE] = {"jdk.ObjectAllocationSample", JFR_ALLOC_SAMPLE},
    [EVENT_LOCK] = {"jdk.JavaMonitorEnter", JFR_LOCK},
    [EVENT_PARK] = {"jdk.ThreadPark", JFR_PARK},
    [EVENT_LIVE] = {"profiler.LiveObject", JFR_LIVE},
    [EVENT_MALLOC] = {"profiler.Malloc", JFR_MALLOC},
};

/* Threads in native code are sampled whether they run or wait, so those samples are no CPU time and
 * have no second type. A counter's type is called like the event. */
static const struct {
    const char *count, *value, *unit;
} families[JFR_FAMILIES] = {
    [JFR_CPU] = {"samples", "cpu", "nanoseconds"},
    [JFR_WALL] = {"wall_samples", "wall", "nanoseconds"},
    [JFR_COUNTER] = {"samples", NULL, "count"},
    [JFR_ALLOC_NEW_TLAB] = {"alloc_in_new_tlab_objects", "alloc_in_new_tlab_bytes", "bytes"},
    [JFR_ALLOC_SAMPLE] = {"alloc_sample_objects", "alloc_sample_bytes", "bytes"},
    [JFR_ALLOC_OUTSIDE_TLAB] = {"alloc_outside_tlab_objects", "alloc_outside_tlab_bytes", "bytes"},
    [JFR_LOCK] = {"lock_contentions", "lock_delay", "nanoseconds"},
    [JFR_PARK] = {"park_contentions", "park_delay", "nanoseconds"},
    [JFR_LIVE] = {"live_objects", "live_bytes", "bytes"},
    [JFR_MALLOC] = {"malloc_objects", "malloc_bytes", "bytes"},
    [JFR_NATIVE] = {"native_samples", NULL, NULL},
};

/* The events of one chunk that are known. */
struct events {
    struct jfr_recording *recording;
    struct jfr_chunk *chunk;
    int64_t id[EVENT_KINDS];
    bool described[EVENT_KINDS];
    bool present[EVENT_KINDS];
    struct jfr_layout layout[EVENT_KINDS];
    enum jfr_family execution_family;
    struct jfr_values values;
};

void jfr_recording_init(struct jfr_recording *recording, struct profile *profile)
{
    *recording = (struct jfr_recording){
        .profile = profile,
        .thread_key = profile_cstring(profile, "thread"),
        .class_key = profile_cstring(profile, "class"),
        .state_key = profile_cstring(profile, "state"),
        .context_key = profile_cstring(profile, "context_id"),
        .span_name_key = profile_cstring(profile, "span_name"),
    };
}

static enum event_kind kind_of(const struct events *events, int64_t type)
{
    for (enum event_kind kind = 0; kind < EVENT_KINDS; kind++)
        if (events->described[kind] && events->id[kind] == type)
            return kind;
    return EVENT_KINDS;
}

/* ---- settings ---- */

/* "20 ms", as the JDK writes it, or bare nanoseconds; 0 for what is no time, like "everyChunk". */
static int64_t parse_period(const char *text)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {
        {"", 1},           {"ns", 1},          {"us", 1000},         {"ms", 1000000},
        {"s", 1000000000}, {"m", 60000000000}, {"h", 3600000000000}, {"d", 86400000000000}};
    int64_t number = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, *at - '0', &number))
            return 0;
    if (at == text)
        return 0;
    at += strspn(at, " ");
    for (size_t i = 0; i < ARRAY_LENGTH(units); i++)
        if (!strcmp(at, units[i].name))
            return __builtin_mul_overflow(number, units[i].ns, &number) ? 0 : number;
    return 0;
}

static void read_setting(struct events *events)
{
    struct jfr_recording *recording = events->recording;
    struct jfr_chunk *chunk = events->chunk;
    char name[16];
    chunk->scratch.length = 0;
    jfr_chunk_text(chunk, &events->values, SLOT_SETTING_NAME, &chunk->scratch);
    size_t length = MIN(chunk->scratch.length, sizeof(name) - 1);
    if (!length)
        return;
    memcpy(name, chunk->scratch.data, length);
    name[length] = '\0';

    bool of_samples = events->described[EVENT_EXECUTION] &&
                      jfr_number(&events->values, SLOT_SETTING_ID) == events->id[EVENT_EXECUTION];
    bool is_period = of_samples && (!strcmp(name, "period") || !strcmp(name, "interval"));
    bool is_wall = !strcmp(name, "wall");
    if (!is_period && !is_wall && strcmp(name, "event"))
        return;
    chunk->scratch.length = 0;
    jfr_chunk_text(chunk, &events->values, SLOT_SETTING_VALUE, &chunk->scratch);
    const char *value = buffer_text(&chunk->scratch);
    if (is_period)
        recording->cpu_period_ns = parse_period(value);
    else if (is_wall)
        recording->wall_period_ns = parse_period(value);
    else
        recording->event = profile_cstring(recording->profile, value);
}

static int64_t cpu_period(const struct jfr_recording *recording)
{
    if (recording->cpu_period_ns)
        return recording->cpu_period_ns;
    return recording->async_profiler ? ASYNC_PERIOD_NS : JDK_PERIOD_NS;
}

/* With event=wall the interval of the only engine is the wall clock's. */
static int64_t wall_period(const struct jfr_recording *recording, bool from_execution)
{
    if (from_execution && recording->cpu_period_ns)
        return recording->cpu_period_ns;
    return recording->wall_period_ns ? recording->wall_period_ns : ASYNC_WALL_PERIOD_NS;
}

/* What async-profiler's `event` makes of execution samples. */
static enum jfr_family execution_family(const struct jfr_recording *recording)
{
    static const char *const cpu[] = {"", "cpu", "itimer", "ctimer", "cpu-clock", "task-clock"};
    const char *event = profile_text(recording->profile, recording->event);
    if (!strcmp(event, "wall"))
        return JFR_WALL;
    for (size_t i = 0; i < ARRAY_LENGTH(cpu); i++)
        if (!strcmp(event, cpu[i]))
            return JFR_CPU;
    return JFR_COUNTER;
}

/* ---- samples ---- */

static int declare_types(struct events *events, struct error *error)
{
    struct jfr_recording *recording = events->recording;
    struct profile *profile = recording->profile;
    bool needed[JFR_FAMILIES] = {0};
    for (enum event_kind kind = EVENT_SETTING + 1; kind < EVENT_KINDS; kind++)
        if (events->present[kind])
            needed[kind == EVENT_EXECUTION ? events->execution_family : kinds[kind].family] = true;
    for (enum jfr_family family = 0; family < JFR_FAMILIES; family++) {
        if (!needed[family])
            continue;
        uint32_t count = profile_cstring(profile, families[family].count);
        recording->seen[family] = true;
        recording->count_type[family] = recording->value_type[family] =
            profile_type(profile, count, profile_cstring(profile, "count"));
        if (families[family].unit) {
            uint32_t value = families[family].value
                                 ? profile_cstring(profile, families[family].value)
                                 : recording->event;
            recording->value_type[family] =
                profile_type(profile, value, profile_cstring(profile, families[family].unit));
        }
        if (recording->count_type[family] == PROFILE_TYPES_MAX ||
            recording->value_type[family] == PROFILE_TYPES_MAX)
            return error_set(error, -E2BIG,
                             "Together the files have more than %d sample types, which is more "
                             "than a profile can hold.",
                             PROFILE_TYPES_MAX);
    }
    return 0;
}

static int64_t multiply(int64_t a, int64_t b)
{
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
    return product;
}

/* By the same floating-point division as the JDK's own reader, so that sums agree to the digit. */
static int64_t ticks_to_ns(const struct jfr_chunk *chunk, int64_t ticks)
{
    double ns = (double)ticks / chunk->ticks_per_ns;
    if (!(ns > -9e18 && ns < 9e18))
        return ticks < 0 ? INT64_MIN : INT64_MAX;
    return (int64_t)ns;
}

static uint64_t time_of(const struct events *events)
{
    const struct jfr_chunk *chunk = events->chunk;
    if (!(chunk->profile->detail & PROFILE_TIMES))
        return 0;
    int64_t ticks, time;
    if (__builtin_sub_overflow(jfr_number(&events->values, SLOT_START), chunk->start_ticks,
                               &ticks) ||
        __builtin_add_overflow(chunk->start_ns, ticks_to_ns(chunk, ticks), &time))
        return 0;
    return time > 0 ? (uint64_t)time : 0;
}

static uint32_t labels_of(struct events *events, bool with_state)
{
    struct jfr_recording *recording = events->recording;
    struct jfr_chunk *chunk = events->chunk;
    const struct jfr_values *values = &events->values;
    if (!(recording->profile->detail & PROFILE_LABELS))
        return 0;
    struct profile_label labels[5] = {0};
    size_t count = 0;
    uint32_t text;
    if ((text = jfr_chunk_thread(chunk, jfr_number(values, SLOT_THREAD))))
        labels[count++] = (struct profile_label){.key = recording->thread_key, .text = text};
    if ((text = jfr_chunk_class(chunk, jfr_number(values, SLOT_CLASS))))
        labels[count++] = (struct profile_label){.key = recording->class_key, .text = text};
    if (with_state && (text = jfr_chunk_thread_state(chunk, jfr_number(values, SLOT_STATE))))
        labels[count++] = (struct profile_label){.key = recording->state_key, .text = text};
    int64_t context = jfr_number(values, SLOT_CONTEXT);
    if (context)
        labels[count++] = (struct profile_label){.key = recording->context_key, .number = context};
    if ((text = jfr_chunk_string(chunk, values, SLOT_SPAN_NAME)))
        labels[count++] = (struct profile_label){.key = recording->span_name_key, .text = text};
    return profile_label_set(recording->profile, labels, count);
}

static uint32_t link_of(const struct events *events)
{
    uint64_t span = (uint64_t)jfr_number(&events->values, SLOT_SPAN);
    struct profile_link link = {0};
    for (int i = 0; i < 8; i++)
        link.span_id[i] = (uint8_t)(span >> (56 - 8 * i));
    return profile_link(events->recording->profile, &link);
}

/* How much an event counts, in its family's two types. */
static void weigh(const struct events *events, enum event_kind kind, enum jfr_family family,
                  int64_t *ret_count, int64_t *ret_value)
{
    const struct jfr_recording *recording = events->recording;
    const struct jfr_values *values = &events->values;
    int64_t count = 1, value = 0;
    switch (kind) {
    case EVENT_EXECUTION:
        value = family == JFR_WALL ? wall_period(recording, true) : cpu_period(recording);
        break;
    case EVENT_CPU_TIME:
        value = ticks_to_ns(events->chunk, jfr_number(values, SLOT_SAMPLING_PERIOD));
        break;
    case EVENT_WALL:
        if (values->present & 1u << SLOT_SAMPLES)
            count = jfr_number(values, SLOT_SAMPLES);
        value = multiply(count, wall_period(recording, false));
        break;
    case EVENT_ALLOC_NEW_TLAB:
        value = jfr_number(values, SLOT_TLAB_SIZE);
        break;
    case EVENT_ALLOC_OUTSIDE_TLAB:
    case EVENT_LIVE:
        value = jfr_number(values, SLOT_ALLOCATION_SIZE);
        break;
    case EVENT_ALLOC_SAMPLE:
        value = jfr_number(values, SLOT_WEIGHT);
        break;
    case EVENT_LOCK:
    case EVENT_PARK:
        value = ticks_to_ns(events->chunk, jfr_number(values, SLOT_DURATION));
        break;
    case EVENT_MALLOC:
        value = jfr_number(values, SLOT_SIZE);
        break;
    default:
        break;
    }
    *ret_count = count;
    *ret_value = value;
}

static void add_sample(struct events *events, enum event_kind kind)
{
    struct jfr_recording *recording = events->recording;
    struct profile *profile = recording->profile;
    enum jfr_family family =
        kind == EVENT_EXECUTION ? events->execution_family : kinds[kind].family;
    uint32_t node = jfr_chunk_stack(events->chunk, jfr_number(&events->values, SLOT_STACK));
    size_t row = profile_sample(profile, node, labels_of(events, family == JFR_WALL),
                                link_of(events), time_of(events));
    int64_t count, value;
    weigh(events, kind, family, &count, &value);
    profile_add_value(profile, row, recording->count_type[family], count);
    if (recording->value_type[family] != recording->count_type[family])
        profile_add_value(profile, row, recording->value_type[family], value);
}

/* Goes over the chunk's records; `settings` picks the settings, otherwise the samples. */
static int read_records(struct events *events, bool settings, struct error *error)
{
    struct jfr_chunk *chunk = events->chunk;
    struct jfr_record record;
    size_t position = 0, count = 0;
    int r;
    while ((r = jfr_next_record(chunk, &position, &record, error)) > 0) {
        enum event_kind kind = kind_of(events, record.type);
        if (kind == EVENT_KINDS || (kind == EVENT_SETTING) != settings)
            continue;
        events->values.present = 0;
        jfr_layout_run(&chunk->metadata, &events->layout[kind], &record.body, &events->values);
        if (record.body.failed)
            return error_set(error, -EBADMSG, "The %s event at offset %llu is damaged.",
                             kinds[kind].class, (unsigned long long)record.offset);
        if (settings)
            read_setting(events);
        else
            add_sample(events, kind);
        if (chunk->text_exhausted)
            return error_set(error, -E2BIG,
                             "The chunk at offset %llu repeats its names far more often than a "
                             "recording does: it is damaged.",
                             (unsigned long long)chunk->offset);
        if (++count % 4096 == 0 && profile_full(chunk->profile))
            return error_set(error, -E2BIG,
                             "There are more distinct stacks and names than a profile can hold "
                             "at offset %llu.",
                             (unsigned long long)record.offset);
    }
    return r;
}

static int find_events(struct events *events, struct error *error)
{
    struct jfr_chunk *chunk = events->chunk;
    for (enum event_kind kind = 0; kind < EVENT_KINDS; kind++) {
        const struct jfr_class *class =
            jfr_metadata_class_by_name(&chunk->metadata, kinds[kind].class);
        if (!class)
            continue;
        struct error inner = {0};
        int r = jfr_layout_make(&chunk->metadata, class, bindings, ARRAY_LENGTH(bindings),
                                &events->layout[kind], &inner);
        if (r < 0)
            return error_set(error, r, "Failed to read the chunk at offset %llu: %s.",
                             (unsigned long long)chunk->offset, inner.text);
        events->id[kind] = class->id;
        events->described[kind] = true;
    }
    for (size_t i = 0; i < chunk->metadata.class_count; i++)
        if (!strncmp(chunk->metadata.classes[i].name, "profiler.", strlen("profiler.")))
            events->recording->async_profiler = true;

    struct jfr_record record;
    size_t position = 0;
    int r;
    while ((r = jfr_next_record(chunk, &position, &record, error)) > 0) {
        enum event_kind kind = kind_of(events, record.type);
        if (kind != EVENT_KINDS)
            events->present[kind] = true;
    }
    return r;
}

int jfr_events_read(struct jfr_recording *recording, struct jfr_chunk *chunk, struct error *error)
{
    struct events events = {.recording = recording, .chunk = chunk};
    int r = find_events(&events, error);
    if (r == 0 && events.present[EVENT_SETTING])
        r = read_records(&events, true, error);
    if (r < 0)
        return r;
    events.execution_family = execution_family(recording);
    r = declare_types(&events, error);
    return r < 0 ? r : read_records(&events, false, error);
}

void jfr_recording_finish(struct jfr_recording *recording)
{
    struct profile *profile = recording->profile;
    uint32_t nanoseconds = profile_cstring(profile, "nanoseconds");
    if (recording->seen[JFR_CPU])
        profile_note_period(profile, profile_cstring(profile, "cpu"), nanoseconds,
                            cpu_period(recording));
    else if (recording->seen[JFR_WALL])
        profile_note_period(profile, profile_cstring(profile, "wall"), nanoseconds,
                            wall_period(recording, execution_family(recording) == JFR_WALL));
    else if (recording->seen[JFR_COUNTER])
        profile_note_period(profile, recording->event, profile_cstring(profile, "count"),
                            cpu_period(recording));
    for (enum jfr_family family = 0; family < JFR_FAMILIES && !profile->default_type; family++)
        if (recording->seen[family])
            profile->default_type = profile->types[recording->value_type[family]].type;
}
