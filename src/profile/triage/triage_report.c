// SPDX-License-Identifier: Apache-2.0
// Triage in words and numbers: see triage_report.h.

#include "profile/triage/triage_report.h"

#include <string.h>

#include "base/text.h"
#include "io/json_write.h"

#define FRAMES_SHOWN 24

static const char *name_of(const struct profile *profile, uint32_t node)
{
    uint32_t function = profile->frames[profile->nodes[node].frame].function;
    const char *name = profile_text(profile, profile->functions[function].name);
    return *name ? name : "[unknown]";
}

static bool is_kernel(const struct profile *profile, uint32_t node)
{
    const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];
    const char *file = profile_text(profile, profile->mappings[frame->mapping].file);
    return !strncmp(file, "[kernel", strlen("[kernel"));
}

/* Innermost first, as many as are shown; without the kernel's own functions. */
static size_t list_stack(const struct profile *profile, uint32_t node, const char **ret_names)
{
    size_t count = 0;
    for (; node && count < FRAMES_SHOWN; node = profile->nodes[node].parent)
        if (!is_kernel(profile, node))
            ret_names[count++] = name_of(profile, node);
    return count;
}

static double percent(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

/* The next command; it names what the report is about. */
static void put_advice(const struct triage *triage, struct buffer *out)
{
    const char *target = triage->target ? triage->target : "-p PID";
    switch (triage->verdict) {
    case TRIAGE_COMPUTING:
        buffer_printf(out, "assay record -F 199 %s -o cpu.html: which functions use the CPU",
                      target);
        break;
    case TRIAGE_STARVED:
        buffer_add_text(out, "assay record -a -d 10 -o all.html: which processes use the CPUs "
                             "instead");
        break;
    case TRIAGE_LOCK:
        buffer_printf(out, "assay record -m lock -d 10 %s -o lock.html: who holds which lock",
                      target);
        break;
    case TRIAGE_DISK:
    case TRIAGE_NETWORK:
    case TRIAGE_PIPE:
    case TRIAGE_IO_URING:
        buffer_printf(out, "assay record -m io -d 10 %s -o io.html: which calls wait", target);
        break;
    case TRIAGE_CHANNEL:
        buffer_printf(out,
                      "assay record -m goroutine -d 10 %s -o goroutines.html: where goroutines "
                      "wait for each other",
                      target);
        break;
    case TRIAGE_IDLE:
        buffer_add_text(out, "nothing: the threads wait for work, so look at who calls this "
                             "program");
        break;
    default:
        buffer_printf(out, "assay record -m wall -d 10 %s -o wall.html: where the threads wait",
                      target);
    }
}

/* "1.234 s", or "1.234 +- 0.012 s" where the error is known. */
static void put_total(const struct triage *triage, enum triage_kind kind, struct buffer *out)
{
    buffer_printf(out, "%9.3f s", (double)triage->ns[kind] / 1e9);
    if (triage->error_ns[kind] >= 1000000)
        buffer_printf(out, " (+- %.3f)", (double)triage->error_ns[kind] / 1e9);
}

static void put_name(struct buffer *out, const char *name)
{
    text_escape_terminal(out, name, strlen(name));
}

static void put_lock(const struct profile *profile, const struct triage *triage, struct buffer *out)
{
    size_t length = 0;
    const char *lock =
        triage->lock ? triage_lock_name(
                           profile_text(profile, profile->functions[triage->lock].name), &length)
                     : NULL;
    if (!triage->holder && !lock)
        return;
    buffer_add_text(out, "\nThe lock ");
    if (lock) {
        text_escape_terminal(out, lock, length);
        buffer_printf(out, " (%.1f%% of that) ", percent(triage->lock_ns, triage->ns[TRIAGE_LOCK]));
    }
    if (triage->holder) {
        buffer_add_text(out, "was held by ");
        put_name(out, profile_text(profile, profile->functions[triage->holder].name));
        buffer_printf(out, " for %.1f%% of that.\n",
                      percent(triage->holder_ns, triage->ns[TRIAGE_LOCK]));
    } else {
        buffer_add_text(out, "is the one with the most waiting; its holder was not seen.\n");
    }
}

static const char *function_name(const struct profile *profile, uint32_t function)
{
    return function ? profile_text(profile, profile->functions[function].name) : "";
}

/* "queue", "0x7f12"; of the function that is a lock's mark. */
static const char *lock_name(const struct profile *profile, uint32_t function, size_t *ret_length)
{
    const char *name =
        function ? triage_lock_name(function_name(profile, function), ret_length) : NULL;
    if (!name)
        *ret_length = 0;
    return name ? name : "";
}

static void put_edges(const struct profile *profile, const struct triage *triage,
                      const char *bullet, struct buffer *out)
{
    if (triage->verdict != TRIAGE_LOCK || !triage->edge_count)
        return;
    buffer_add_text(out, "\nWho waited, for which lock, and who held it:\n");
    for (size_t i = 0; i < triage->edge_count; i++) {
        const struct triage_edge *edge = &triage->edges[i];
        size_t length;
        const char *lock = lock_name(profile, edge->lock, &length);
        buffer_printf(out, "%s%5.1f%% ", bullet, percent(edge->ns, triage->ns[TRIAGE_LOCK]));
        put_name(out, edge->waiter ? function_name(profile, edge->waiter) : "(unknown)");
        buffer_add_text(out, " -> ");
        if (length)
            text_escape_terminal(out, lock, length);
        else
            buffer_add_text(out, "(a lock)");
        buffer_add_text(out, " -> ");
        put_name(out, edge->holder ? function_name(profile, edge->holder) : "(not seen)");
        buffer_add_char(out, '\n');
    }
}

/* Holders of locks, from the program's own mutex profile. */
static void put_holders(const struct profile *profile, const struct triage *triage,
                        const char *bullet, struct buffer *out)
{
    if (!triage->holder_count || !triage->ns[TRIAGE_LOCK])
        return;
    buffer_printf(out, "\nThe program's own profile of mutexes has %.2f s of waiting, for:\n",
                  (double)triage->mutex_ns / 1e9);
    for (size_t i = 0; i < triage->holder_count; i++) {
        buffer_printf(out, "%s%5.1f%% ", bullet, percent(triage->holders[i].ns, triage->mutex_ns));
        put_name(out, function_name(profile, triage->holders[i].function));
        buffer_add_char(out, '\n');
    }
}

static void put_others(const struct profile *profile, const struct triage *triage,
                       const char *bullet, struct buffer *out)
{
    if (triage->verdict != TRIAGE_STARVED || !triage->other_count)
        return;
    buffer_add_text(out, "\nThese had the CPU instead:\n");
    for (size_t i = 0; i < triage->other_count; i++) {
        const struct triage_other *other = &triage->others[i];
        buffer_printf(out, "%s%5.1f%% ", bullet, percent(other->ns, triage->ns[TRIAGE_STARVED]));
        put_name(out, profile_text(profile, other->name));
        if (other->cgroup) {
            buffer_add_text(out, " in the cgroup ");
            put_name(out, profile_text(profile, other->cgroup));
        }
        buffer_add_char(out, '\n');
    }
}

void triage_put_text(const struct profile *profile, const struct triage *triage, bool markdown,
                     struct buffer *out)
{
    const char *names[FRAMES_SHOWN], *bullet = markdown ? "- " : "  ";
    int64_t total_ns = triage->busy_ns + triage->ns[TRIAGE_IDLE];
    buffer_printf(
        out, "%sMostly %s: %.1f%% of the %.2f s that threads were not idle.\n\n",
        markdown ? "## " : "", triage_kind_words(triage->verdict),
        triage->verdict == TRIAGE_IDLE ? 0 : percent(triage->ns[triage->verdict], triage->busy_ns),
        (double)triage->busy_ns / 1e9);
    for (unsigned kind = 0; kind < TRIAGE_KINDS; kind++) {
        if (!triage->ns[kind])
            continue;
        buffer_printf(out, "%s%5.1f%% ", bullet, percent(triage->ns[kind], total_ns));
        put_total(triage, (enum triage_kind)kind, out);
        buffer_printf(out, " %s\n", triage_kind_words((enum triage_kind)kind));
    }
    put_lock(profile, triage, out);
    put_edges(profile, triage, bullet, out);
    put_holders(profile, triage, bullet, out);
    put_others(profile, triage, bullet, out);
    if (triage->node) {
        double share = percent(triage->node_ns, triage->ns[triage->verdict]);
        double error = 100 * triage_share_error(triage, triage->verdict, share / 100);
        buffer_printf(out, "\nThe stack with most of it (%.1f%%", share);
        if (error >= 0.05)
            buffer_printf(out, " +- %.1f", error);
        buffer_add_text(out, "), innermost first:\n");
        size_t count = list_stack(profile, triage->node, names);
        for (size_t i = 0; i < count; i++) {
            buffer_add_text(out, bullet);
            put_name(out, names[i]);
            buffer_add_char(out, '\n');
        }
    }
    buffer_add_text(out, "\nNext: ");
    put_advice(triage, out);
    buffer_add_char(out, '\n');
}

static void put_json_numbers(struct json_writer *json, const char *key, const int64_t *values)
{
    json_write_key(json, key);
    json_write_object(json);
    for (unsigned kind = 0; kind < TRIAGE_KINDS; kind++)
        json_member_signed(json, triage_kind_name((enum triage_kind)kind), values[kind]);
    json_write_object_end(json);
}

static void put_json_lock(const struct profile *profile, const struct triage *triage,
                          struct json_writer *json)
{
    size_t length;
    const char *lock =
        triage->lock ? triage_lock_name(
                           profile_text(profile, profile->functions[triage->lock].name), &length)
                     : NULL;
    if (triage->holder) {
        json_member_text(json, "holder",
                         profile_text(profile, profile->functions[triage->holder].name));
        json_member_signed(json, "holder_ns", triage->holder_ns);
    }
    if (lock) {
        json_write_key(json, "lock");
        json_write_bytes(json, lock, length);
        json_member_signed(json, "lock_ns", triage->lock_ns);
    }
}

static void put_json_edges(const struct profile *profile, const struct triage *triage,
                           struct json_writer *json)
{
    json_write_key(json, "locks");
    json_write_array(json);
    for (size_t i = 0; i < triage->edge_count; i++) {
        const struct triage_edge *edge = &triage->edges[i];
        size_t length;
        const char *lock = lock_name(profile, edge->lock, &length);
        json_write_object(json);
        json_member_signed(json, "ns", edge->ns);
        json_member_text(json, "waiter", function_name(profile, edge->waiter));
        json_write_key(json, "lock");
        json_write_bytes(json, lock, length);
        json_member_text(json, "holder", function_name(profile, edge->holder));
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

static void put_json_holders(const struct profile *profile, const struct triage *triage,
                             struct json_writer *json)
{
    json_member_signed(json, "mutex_ns", triage->mutex_ns);
    json_write_key(json, "mutex_holders");
    json_write_array(json);
    for (size_t i = 0; i < triage->holder_count; i++) {
        json_write_object(json);
        json_member_signed(json, "ns", triage->holders[i].ns);
        json_member_text(json, "holder", function_name(profile, triage->holders[i].function));
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

void triage_put_json(const struct profile *profile, const struct triage *triage, struct buffer *out)
{
    const char *names[FRAMES_SHOWN];
    struct json_writer writer = json_writer(out), *json = &writer;
    _cleanup_buffer_ struct buffer next = {0};
    json_write_object(json);
    json_member_text(json, "verdict", triage_kind_name(triage->verdict));
    json_member_text(json, "words", triage_kind_words(triage->verdict));
    json_member_signed(json, "busy_ns", triage->busy_ns);
    put_json_numbers(json, "ns", triage->ns);
    put_json_numbers(json, "error_ns", triage->error_ns);
    put_json_lock(profile, triage, json);
    put_json_edges(profile, triage, json);
    put_json_holders(profile, triage, json);
    json_write_key(json, "ran_instead");
    json_write_array(json);
    for (size_t i = 0; i < triage->other_count; i++) {
        const struct triage_other *other = &triage->others[i];
        json_write_object(json);
        json_member_signed(json, "ns", other->ns);
        json_member_text(json, "name", profile_text(profile, other->name));
        if (other->cgroup)
            json_member_text(json, "cgroup", profile_text(profile, other->cgroup));
        json_write_object_end(json);
    }
    json_write_array_end(json);
    double share = percent(triage->node_ns, triage->ns[triage->verdict]) / 100;
    json_member_signed(json, "stack_ns", triage->node_ns);
    json_member_fixed(json, "stack_share_error", triage_share_error(triage, triage->verdict, share),
                      4);
    json_write_key(json, "stack");
    json_write_array(json);
    size_t count = list_stack(profile, triage->node, names);
    for (size_t i = 0; i < count; i++)
        json_write_text(json, names[i]);
    json_write_array_end(json);
    put_advice(triage, &next);
    json_member_text(json, "next", buffer_text(&next));
    json_write_object_end(json);
    buffer_add_char(out, '\n');
}
