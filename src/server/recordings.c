// SPDX-License-Identifier: Apache-2.0
// The book of recordings: see recordings.h.

#include "server/recordings.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/memory.h"
#include "base/text.h"
#include "label/selector.h"
#include "server/question.h"

static const char *const state_names[RECORDING_STATES] = {
    [RECORDING_PENDING] = "pending",     [RECORDING_RUNNING] = "running",
    [RECORDING_UPLOADING] = "uploading", [RECORDING_DONE] = "done",
    [RECORDING_REFUSED] = "refused",     [RECORDING_FAILED] = "failed",
    [RECORDING_STOPPED] = "stopped",     [RECORDING_EXPIRED] = "expired",
};

const char *recording_state_name(enum recording_state state)
{
    return state_names[state];
}

enum recording_state recording_state_parse(const char *name)
{
    unsigned state = 0;
    while (state < RECORDING_STATES && strcmp(state_names[state], name))
        state++;
    return state;
}

bool recording_state_over(enum recording_state state)
{
    return state >= RECORDING_DONE;
}

void recording_free(struct recording *recording)
{
    if (!recording)
        return;
    for (size_t i = 0; i < recording->part_count; i++) {
        free(recording->parts[i].host);
        free(recording->parts[i].reason);
    }
    free(recording->parts);
    free(recording->service);
    free(recording->selector);
    free(recording);
}

void recording_book_release(struct recording_book *book)
{
    for (size_t i = 0; i < book->count; i++)
        recording_free(book->list[i]);
    free(book->list);
    *book = (struct recording_book){0};
}

/* ---- states ---- */

/* What goes on counts before what is over, and what worked before what didn't. */
enum recording_state recording_state(const struct recording *recording)
{
    static const enum recording_state order[] = {
        RECORDING_RUNNING, RECORDING_UPLOADING, RECORDING_PENDING, RECORDING_DONE,
        RECORDING_FAILED,  RECORDING_REFUSED,   RECORDING_STOPPED, RECORDING_EXPIRED};
    for (size_t i = 0; i < ARRAY_LENGTH(order); i++)
        for (size_t k = 0; k < recording->part_count; k++)
            if (recording->parts[k].state == order[i])
                return order[i];
    return RECORDING_EXPIRED;
}

uint64_t recording_samples(const struct recording *recording)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < recording->part_count; i++)
        sum += recording->parts[i].samples;
    return sum;
}

static void set_state(struct recording_part *part, enum recording_state state, const char *reason)
{
    part->state = state;
    if (!strcmp(part->reason, reason))
        return;
    free(part->reason);
    part->reason = memory_strdup(reason);
}

bool recording_stop(struct recording *recording)
{
    if (recording->stopped || recording_state_over(recording_state(recording)))
        return false;
    recording->stopped = true;
    for (size_t i = 0; i < recording->part_count; i++)
        if (recording->parts[i].state == RECORDING_PENDING)
            set_state(&recording->parts[i], RECORDING_STOPPED, "It was stopped before it began.");
    return true;
}

bool recording_book_expire(struct recording_book *book, int64_t now_ns)
{
    bool changed = false;
    for (size_t i = 0; i < book->count; i++) {
        struct recording *recording = book->list[i];
        int64_t seconds = (int64_t)recording->seconds + RECORDING_LATE_S;
        int64_t late_ns = recording->expires_ns + seconds * 1000000000;
        if (now_ns <= recording->expires_ns)
            continue;
        for (size_t k = 0; k < recording->part_count; k++) {
            struct recording_part *part = &recording->parts[k];
            if (recording_state_over(part->state))
                continue;
            if (part->state == RECORDING_PENDING)
                set_state(part, RECORDING_EXPIRED, "The agent didn't begin in time.");
            else if (now_ns > late_ns)
                set_state(part, RECORDING_EXPIRED, "The agent wasn't heard of any more.");
            else
                continue;
            changed = true;
        }
    }
    return changed;
}

bool recording_update(struct recording_book *book, const char *agent,
                      const struct agent_update *update)
{
    struct recording *recording = recording_find(book, update->id);
    enum recording_state state = recording_state_parse(update->state);
    /* Stopped and expired are ours to say, and pending says nothing. */
    if (!recording || state == RECORDING_PENDING || state > RECORDING_FAILED)
        return false;
    for (size_t i = 0; i < recording->part_count; i++) {
        struct recording_part *part = &recording->parts[i];
        if (strcmp(part->agent, agent))
            continue;
        bool same = part->state == state && part->samples == update->samples &&
                    !strcmp(part->reason, update->reason);
        if (same || recording_state_over(part->state) || state < part->state)
            return false;
        part->samples = update->samples;
        set_state(part, state, update->reason);
        return true;
    }
    return false;
}

/* ---- new ones ---- */

struct recording *recording_find(const struct recording_book *book, const char *id)
{
    for (size_t i = 0; i < book->count; i++)
        if (!strcmp(book->list[i]->id, id))
            return book->list[i];
    return NULL;
}

/* The first that is over goes; false: all go on. */
static bool make_room(struct recording_book *book)
{
    for (size_t i = 0; i < book->count; i++) {
        if (!recording_state_over(recording_state(book->list[i])))
            continue;
        recording_free(book->list[i]);
        memmove(book->list + i, book->list + i + 1, (--book->count - i) * sizeof(*book->list));
        return true;
    }
    return false;
}

static int check_wish(const struct recording_wish *wish, struct error *error)
{
    if (!*wish->service || strlen(wish->service) > 256)
        return error_set(error, -EINVAL, "A recording wants a service, of at most 256 bytes.");
    if (!wish->rate_hz || wish->rate_hz > RECORDING_RATE_MAX)
        return error_set(error, -EINVAL, "The rate of a recording is 1 to %d per second.",
                         RECORDING_RATE_MAX);
    if (!wish->seconds || wish->seconds > RECORDING_SECONDS_MAX)
        return error_set(error, -EINVAL, "A recording takes 1 to %d seconds.",
                         RECORDING_SECONDS_MAX);
    if (!wish->wait_s || wish->wait_s > RECORDING_WAIT_MAX_S)
        return error_set(error, -EINVAL, "Agents are waited for from 1 to %d seconds.",
                         RECORDING_WAIT_MAX_S);
    size_t length = strlen(wish->name);
    if (length >= RECORDING_NAME_BYTES ||
        strspn(wish->name, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-._ ") !=
            length)
        return error_set(error, -EINVAL,
                         "The name of a recording has at most %d letters, digits, blanks, dashes, "
                         "dots and underscores.",
                         RECORDING_NAME_BYTES - 1);
    return 0;
}

static bool is_meant(const struct fleet_agent *agent, const struct selector *selector,
                     const struct recording_wish *wish)
{
    bool meant = !wish->host_count;
    for (size_t i = 0; i < wish->host_count; i++)
        meant = meant || !strcmp(wish->hosts[i], agent->host);
    return meant && selector_matches(selector, &agent->labels);
}

static int add_parts(struct recording *recording, const struct agent_table *agents,
                     const struct recording_wish *wish, int64_t now_ns, struct error *error)
{
    _cleanup_selector_ struct selector selector = {0};
    size_t silent = 0, capacity = 0;
    int r = selector_parse(wish->selector, strlen(wish->selector), &selector, error);
    if (r < 0)
        return r;
    for (size_t i = 0; i < agents->count; i++) {
        const struct fleet_agent *agent = agents->list[i];
        if (!is_meant(agent, &selector, wish))
            continue;
        if (agent_silent(agent, now_ns)) {
            silent++;
            continue;
        }
        if (recording->part_count == RECORDING_PARTS_MAX)
            return error_set(error, -EINVAL,
                             "More than %d agents are meant; choose fewer by hosts or a selector.",
                             RECORDING_PARTS_MAX);
        array_reserve(recording->parts, capacity, recording->part_count + 1);
        struct recording_part *part = &recording->parts[recording->part_count++];
        *part = (struct recording_part){.host = memory_strdup(agent->host),
                                        .reason = memory_strdup("")};
        memcpy(part->agent, agent->id, sizeof(part->agent));
    }
    if (recording->part_count)
        return 0;
    return error_set(error, -ENOENT,
                     "No agent that reports is meant (%zu are known, %zu of those meant are "
                     "silent); `assay agents` lists them.",
                     agents->count, silent);
}

/* How many bytes of a text are whole characters, of at most so many. */
static size_t whole(const char *text, size_t most)
{
    size_t length = 0, all = strlen(text), next;
    while (length < all && (next = utf8_sequence(text + length, all - length)) &&
           length + next <= most)
        length += next;
    return length;
}

static void name_it(struct recording *recording, const struct recording_wish *wish, int64_t now_ns)
{
    uint64_t random = (uint64_t)now_ns;
    char when[24];
    time_t seconds = now_ns / 1000000000;
    struct tm utc;
    if (getrandom(&random, sizeof(random), 0) < 0)
        random = (uint64_t)now_ns * 0x9e3779b97f4a7c15u;
    snprintf(recording->id, sizeof(recording->id), "r%010llx",
             (unsigned long long)(random & 0xffffffffffu));
    gmtime_r(&seconds, &utc);
    strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &utc);
    if (*wish->name)
        snprintf(recording->name, sizeof(recording->name), "%s", wish->name);
    else
        snprintf(recording->name, sizeof(recording->name), "%.*s-%s", (int)whole(wish->service, 40),
                 wish->service, when);
}

int recording_add(struct recording_book *book, const struct agent_table *agents,
                  const struct recording_wish *wish, int64_t now_ns, struct recording **ret,
                  struct error *error)
{
    int r = check_wish(wish, error);
    if (r < 0)
        return r;
    struct recording *recording = memory_zalloc(1, sizeof(*recording));
    name_it(recording, wish, now_ns);
    snprintf(recording->by, sizeof(recording->by), "%s", wish->by);
    recording->service = memory_strdup(wish->service);
    recording->selector = memory_strdup(wish->selector);
    recording->rate_hz = wish->rate_hz;
    recording->seconds = wish->seconds;
    recording->created_ns = now_ns;
    recording->expires_ns = now_ns + (int64_t)wish->wait_s * 1000000000;
    r = add_parts(recording, agents, wish, now_ns, error);
    if (!r && book->count >= RECORDINGS_MAX && !make_room(book))
        r = error_set(error, -EBUSY,
                      "There are %d recordings that have not ended; stop one of them first.",
                      RECORDINGS_MAX);
    if (r < 0) {
        recording_free(recording);
        return r;
    }
    array_reserve(book->list, book->capacity, book->count + 1);
    book->list[book->count++] = *ret = recording;
    return 0;
}

/* ---- as JSON ---- */

static void put(struct buffer *out, const char *key, const char *text)
{
    buffer_printf(out, "\"%s\":", key);
    json_put_text(out, text);
}

static void put_next(struct buffer *out, const char *key, const char *text)
{
    buffer_add_char(out, ',');
    put(out, key, text);
}

void recording_write_orders(const struct recording_book *book, const char *agent,
                            struct buffer *out)
{
    const char *comma = "";
    buffer_add_char(out, '[');
    for (size_t i = 0; i < book->count; i++) {
        const struct recording *recording = book->list[i];
        for (size_t k = 0; k < recording->part_count; k++) {
            const struct recording_part *part = &recording->parts[k];
            if (recording_state_over(part->state) || strcmp(part->agent, agent))
                continue;
            buffer_printf(out, "%s{", comma);
            put(out, "id", recording->id);
            put_next(out, "name", recording->name);
            put_next(out, "service", recording->service);
            buffer_printf(out, ",\"rate\":%llu,\"seconds\":%llu,\"state\":\"%s\",\"stop\":%s}",
                          (unsigned long long)recording->rate_hz,
                          (unsigned long long)recording->seconds, state_names[part->state],
                          recording->stopped ? "true" : "false");
            comma = ",";
        }
    }
    buffer_add_char(out, ']');
}

static void write_parts(const struct recording *recording, struct buffer *out)
{
    buffer_add_text(out, ",\"agents\":[");
    for (size_t i = 0; i < recording->part_count; i++) {
        const struct recording_part *part = &recording->parts[i];
        buffer_add_text(out, i ? ",{" : "{");
        put(out, "agent", part->agent);
        put_next(out, "host", part->host);
        put_next(out, "reason", part->reason);
        buffer_printf(out, ",\"state\":\"%s\",\"samples\":%llu}", state_names[part->state],
                      (unsigned long long)part->samples);
    }
    buffer_add_char(out, ']');
}

void recording_write(const struct recording *recording, bool with_parts, struct buffer *out)
{
    size_t counts[RECORDING_STATES] = {0};
    const char *comma = "";
    buffer_add_char(out, '{');
    put(out, "id", recording->id);
    put_next(out, "name", recording->name);
    put_next(out, "service", recording->service);
    put_next(out, "selector", recording->selector);
    put_next(out, "by", recording->by);
    buffer_printf(out,
                  ",\"rate\":%llu,\"seconds\":%llu,\"created\":%.3f,\"expires\":%.3f,"
                  "\"stopped\":%s,\"state\":\"%s\",\"samples\":%llu,\"agents_by_state\":{",
                  (unsigned long long)recording->rate_hz, (unsigned long long)recording->seconds,
                  (double)recording->created_ns / 1e9, (double)recording->expires_ns / 1e9,
                  recording->stopped ? "true" : "false", state_names[recording_state(recording)],
                  (unsigned long long)recording_samples(recording));
    for (size_t i = 0; i < recording->part_count; i++)
        counts[recording->parts[i].state]++;
    for (unsigned i = 0; i < RECORDING_STATES; i++)
        if (counts[i]) {
            buffer_printf(out, "%s\"%s\":%zu", comma, state_names[i], counts[i]);
            comma = ",";
        }
    buffer_add_char(out, '}');
    if (with_parts)
        write_parts(recording, out);
    buffer_add_char(out, '}');
}
