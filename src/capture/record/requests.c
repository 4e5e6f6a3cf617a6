// SPDX-License-Identifier: Apache-2.0
// Counters of requests: see requests.h.

#include "capture/record/requests.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "capture/record/recorder.h"
#include "capture/record/vocabulary.h"

#define SIGNATURE "ASSAYREQ"
#define VERSION 1
#define ROUTES_MAX 256
#define ROUTE_BYTES 96

struct table_head {
    char signature[8];
    uint32_t version, count;
};

struct table_row {
    char name[ROUTE_BYTES];
    uint64_t requests, failed, duration_ns, unused;
};

/* The last counts read from a process's table. */
struct request_counts {
    uint64_t address; /* of the table */
    struct table_row rows[ROUTES_MAX];
    struct table_row read[ROUTES_MAX];
};

static bool read_table(const struct runtime_memory *memory, uint64_t address,
                       struct table_row rows[ROUTES_MAX], size_t *ret_count)
{
    struct table_head head;
    if (!runtime_read(memory, address, &head, sizeof(head)) ||
        memcmp(head.signature, SIGNATURE, sizeof(head.signature)) != 0 || head.version != VERSION ||
        head.count > ROUTES_MAX ||
        (head.count &&
         !runtime_read(memory, address + sizeof(head), rows, head.count * sizeof(*rows))))
        return false;
    *ret_count = head.count;
    return true;
}

/* "GET /user/{id}": the method, if there is one, and the route. */
static const char *split_route(const char *name, char ret_method[16])
{
    size_t length = 0;
    while (isupper((unsigned char)name[length]))
        length++;
    ret_method[0] = '\0';
    if (!length || length >= 16 || name[length] != ' ' || !name[length + 1])
        return name;
    memcpy(ret_method, name, length);
    ret_method[length] = '\0';
    return name + length + 1;
}

static void add(struct recorder *recorder, size_t row, const char *type, const char *unit,
                uint64_t value)
{
    struct profile *profile = recorder->profile;
    if (value && value <= INT64_MAX)
        profile_add_value(
            profile, row,
            profile_type(profile, profile_cstring(profile, type), profile_cstring(profile, unit)),
            (int64_t)value);
}

static void add_row(struct recorder *recorder, uint32_t labels, const struct table_row *now,
                    const struct table_row *before, int64_t now_ns)
{
    struct profile *profile = recorder->profile;
    char method[16];
    const char *route = split_route(now->name, method);
    struct profile_label list[] = {
        {.key = profile_cstring(profile, "http.route"), .text = profile_cstring(profile, route)},
        {.key = profile_cstring(profile, "http.request.method"),
         .text = profile_cstring(profile, method)}};
    uint32_t own = profile_label_set(profile, list, method[0] ? 2 : 1);
    uint32_t frame = recorder_mark(recorder, now->name);
    size_t row = profile_sample(profile, profile_stack(profile, &frame, 1),
                                sample_context_add(profile, labels, own), 0,
                                (uint64_t)(now_ns + recorder->epoch_ns));
    add(recorder, row, "requests", "count", now->requests - before->requests);
    add(recorder, row, "failed_requests", "count", now->failed - before->failed);
    add(recorder, row, "request_duration", "nanoseconds", now->duration_ns - before->duration_ns);
}

static bool is_later(const struct table_row *now, const struct table_row *before)
{
    return !strcmp(now->name, before->name) && now->requests >= before->requests &&
           now->failed >= before->failed && now->duration_ns >= before->duration_ns;
}

static void take(struct recorder *recorder, struct process *process, struct request_counts *counts,
                 size_t count, int64_t now_ns)
{
    struct recorder_sample sample = {
        .pid = process->pid, .tid = process->pid, .comm = process->name};
    uint32_t labels = CAPTURE_UNWANTED;
    bool asked = false;
    for (size_t i = 0; i < count; i++) {
        struct table_row *now = &counts->read[i], *before = &counts->rows[i];
        now->name[ROUTE_BYTES - 1] = '\0';
        if (!now->name[0] || !utf8_valid(now->name, strlen(now->name)))
            continue;
        if (!before->name[0])
            memcpy(before->name, now->name, ROUTE_BYTES);
        bool later = is_later(now, before) && now->requests != before->requests;
        if (later && recorder->profile && recorder_wants(recorder, (uint64_t)now_ns)) {
            labels = asked ? labels : recorder_labels(recorder, &sample);
            asked = true;
            if (labels != CAPTURE_UNWANTED)
                add_row(recorder, labels, now, before, now_ns);
        }
        *before = *now;
    }
}

static void look_at(struct recorder *recorder, struct process *process,
                    struct runtime_reader *reader, int64_t now_ns)
{
    struct process_contexts *contexts = &process->contexts;
    uint64_t address = contexts->published->requests;
    struct runtime_memory memory = runtime_reader_of(reader, process->pid);
    bool first = !contexts->requests;
    size_t count = 0;
    if (first)
        contexts->requests = memory_zalloc(1, sizeof(*contexts->requests));
    struct request_counts *counts = contexts->requests;
    if (counts->address != address)
        memset(counts->rows, 0, sizeof(counts->rows));
    counts->address = address;
    if (!read_table(&memory, address, counts->read, &count))
        return;
    /* Of a process that began under our eyes, all requests count. */
    if (first && !process->began_here)
        memcpy(counts->rows, counts->read, count * sizeof(*counts->rows));
    take(recorder, process, counts, count, now_ns);
}

void requests_look(struct recorder *recorder, struct runtime_reader *reader, int64_t now_ns)
{
    struct processes *processes = &recorder->processes;
    for (size_t i = 0; i < processes->count; i++) {
        struct process *process = processes->list[i];
        if (!process->ended_ns && process->contexts.published &&
            process->contexts.published->requests)
            look_at(recorder, process, reader, now_ns);
    }
}
