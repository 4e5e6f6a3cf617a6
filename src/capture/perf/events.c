// SPDX-License-Identifier: Apache-2.0
// Names of events, and which of them this machine counts: see events.h.

#include "capture/perf/events.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

#define SOFTWARE(event) PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##event
#define HARDWARE(event) PERF_TYPE_HARDWARE, PERF_COUNT_HW_##event

/* Names that mean the same follow each other; the first is the sample type's. */
static const struct known_event {
    const char *name;
    uint32_t type;
    uint64_t config;
    unsigned period; /* see struct perf_event_choice */
} known_events[] = {
    {"cpu-clock", SOFTWARE(CPU_CLOCK), 0},
    {"task-clock", SOFTWARE(CPU_CLOCK), 0}, /* the clocks differ for counting alone */
    {"cycles", HARDWARE(CPU_CYCLES), 0},
    {"cpu-cycles", HARDWARE(CPU_CYCLES), 0},
    {"instructions", HARDWARE(INSTRUCTIONS), 0},
    {"cache-references", HARDWARE(CACHE_REFERENCES), 0},
    {"cache-misses", HARDWARE(CACHE_MISSES), 0},
    {"branches", HARDWARE(BRANCH_INSTRUCTIONS), 0},
    {"branch-instructions", HARDWARE(BRANCH_INSTRUCTIONS), 0},
    {"branch-misses", HARDWARE(BRANCH_MISSES), 0},
    {"bus-cycles", HARDWARE(BUS_CYCLES), 0},
    {"stalled-cycles-frontend", HARDWARE(STALLED_CYCLES_FRONTEND), 0},
    {"stalled-cycles-backend", HARDWARE(STALLED_CYCLES_BACKEND), 0},
    {"ref-cycles", HARDWARE(REF_CPU_CYCLES), 0},
    {"page-faults", SOFTWARE(PAGE_FAULTS), 256},
    {"faults", SOFTWARE(PAGE_FAULTS), 256},
    {"minor-faults", SOFTWARE(PAGE_FAULTS_MIN), 256},
    {"major-faults", SOFTWARE(PAGE_FAULTS_MAJ), 1},
    {"context-switches", SOFTWARE(CONTEXT_SWITCHES), 32},
    {"cs", SOFTWARE(CONTEXT_SWITCHES), 32},
    {"cpu-migrations", SOFTWARE(CPU_MIGRATIONS), 1},
    {"migrations", SOFTWARE(CPU_MIGRATIONS), 1},
    {"alignment-faults", SOFTWARE(ALIGNMENT_FAULTS), 32},
    {"emulation-faults", SOFTWARE(EMULATION_FAULTS), 32},
};

int perf_event_try(const struct perf_event_choice *choice)
{
    struct perf_event_attr attr = {
        .type = choice->type,
        .size = sizeof(attr),
        .config = choice->config,
        .disabled = 1,
        .freq = 1,
        .sample_freq = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

struct perf_event_times perf_event_times(int fd)
{
    struct {
        uint64_t value, enabled, running, lost, more;
    } times = {0};
    if (read(fd, &times, sizeof(times)) < (ssize_t)offsetof(typeof(times), lost))
        return (struct perf_event_times){0};
    return (struct perf_event_times){.enabled_ns = times.enabled,
                                     .running_ns = times.running,
                                     .count = times.value,
                                     .lost = times.lost};
}

unsigned perf_event_uncounted_percent(struct perf_event_times times)
{
    double share = times.enabled_ns ? 1 - (double)times.running_ns / (double)times.enabled_ns : 0;
    return share >= 0.02 ? (unsigned)(100 * share) : 0; /* clocks differ a little */
}

static bool is_word(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && !memcmp(text, word, length);
}

/* "NAME", "NAME:u" or "NAME:k" of so many bytes. */
static int parse_one(const char *text, size_t length, struct perf_event_choice *ret_choice,
                     struct error *error)
{
    size_t name = 0, at = 0, first;
    while (name < length && text[name] != ':')
        name++;
    while (at < ARRAY_LENGTH(known_events) && !is_word(text, name, known_events[at].name))
        at++;
    if (at == ARRAY_LENGTH(known_events)) {
        struct text_meant meant = {.word = text, .length = name};
        for (size_t i = 0; i < ARRAY_LENGTH(known_events); i++)
            text_meant_offer(&meant, known_events[i].name);
        const char *best = text_meant_best(&meant);
        return best ? error_set(error, -EINVAL, "\"%.*s\" is not an event; did you mean \"%s\"?",
                                (int)name, text, best)
                    : error_set(error, -EINVAL,
                                "\"%.*s\" is not an event; `man assay-record` lists them.",
                                (int)name, text);
    }
    for (first = at; first && known_events[first - 1].type == known_events[at].type &&
                     known_events[first - 1].config == known_events[at].config;)
        first--;
    struct perf_event_choice choice = {.name = known_events[first].name,
                                       .type = known_events[at].type,
                                       .config = known_events[at].config,
                                       .period = known_events[at].period};
    choice.in_kernel =
        choice.type == PERF_TYPE_SOFTWARE && (choice.config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
                                              choice.config == PERF_COUNT_SW_CPU_MIGRATIONS);
    choice.user_only = length == name + 2 && text[name + 1] == 'u';
    choice.kernel_only = length == name + 2 && text[name + 1] == 'k';
    if (length != name && !choice.user_only && !choice.kernel_only)
        return error_set(error, -EINVAL, "\"%.*s\": only :u and :k can follow an event.",
                         (int)length, text);
    if (choice.user_only && choice.in_kernel)
        return error_set(error, -EINVAL, "%s never happen in user code; omit :u.", choice.name);
    *ret_choice = choice;
    return 0;
}

static bool is_cpu_clock(const struct perf_event_choice *choice)
{
    return choice->type == PERF_TYPE_SOFTWARE && choice->config == PERF_COUNT_SW_CPU_CLOCK;
}

static bool has_counters(void)
{
    return access("/sys/bus/event_source/devices/cpu", F_OK) == 0 ||
           access("/sys/bus/event_source/devices/cpu_core", F_OK) == 0;
}

static int add_choice(struct perf_events *events, const struct perf_event_choice *choice,
                      struct error *error)
{
    for (size_t i = 0; i < events->count; i++)
        if (!strcmp(events->list[i].name, choice->name))
            return error_set(error, -EINVAL, "The event %s is given twice.", choice->name);
    if (events->count == PERF_EVENTS_MAX)
        return error_set(error, -EINVAL, "More than %d events.", PERF_EVENTS_MAX);
    events->list[events->count++] = *choice;
    return 0;
}

int perf_events_parse(const char *text, perf_event_try_fn try, struct perf_events *ret_events,
                      char *ret_note, struct error *error)
{
    struct perf_events events = {0};
    char missing[PERF_NOTE_BYTES / 2] = "";
    bool hardware = false;
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ",");
        struct perf_event_choice choice;
        int r = parse_one(at, length, &choice, error);
        if (r < 0)
            return r;
        at += length + (at[length] == ',');
        if (is_cpu_clock(&choice)) {
            if (choice.user_only || choice.kernel_only)
                return error_set(error, -EINVAL, "%s takes no :u or :k; use --user or --kernel.",
                                 choice.name);
            events.cpu = true;
            continue;
        }
        r = try(&choice);
        if (r < 0 && r != -EACCES && r != -EPERM) {
            size_t used = strlen(missing);
            snprintf(missing + used, sizeof(missing) - used, "%s%s", used ? ", " : "", choice.name);
            hardware |= choice.type == PERF_TYPE_HARDWARE;
            continue;
        }
        r = add_choice(&events, &choice, error);
        if (r < 0)
            return r;
    }
    if (!events.count && !events.cpu && !missing[0])
        return error_set(error, -EINVAL, "--event requires at least one event.");
    ret_note[0] = '\0';
    if (missing[0])
        snprintf(ret_note, PERF_NOTE_BYTES, "Not counted here: %s. %s Recording cpu-clock instead.",
                 missing,
                 !hardware        ? "The kernel doesn't have this event."
                 : has_counters() ? "The CPU doesn't count it."
                                  : "This machine has no hardware counters, like most virtual "
                                    "machines.");
    events.cpu |= missing[0] != '\0';
    *ret_events = events;
    return 0;
}
