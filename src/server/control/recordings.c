// SPDX-License-Identifier: Apache-2.0
// The book of recordings: see recordings.h.

#include "server/control/recordings.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"
#include "io/json_write.h"
#include "label/selector.h"

#define SELECT_NS 100000000ll /* of CPU time, for choosing the agents of one recording */

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

/* Running ones count before ended ones, and successes before failures. */
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
            set_state(&recording->parts[i], RECORDING_STOPPED, "Stopped before it started.");
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
                set_state(part, RECORDING_EXPIRED, "The agent didn't start in time.");
            else if (now_ns > late_ns)
                set_state(part, RECORDING_EXPIRED, "The agent stopped reporting.");
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
    /* Only the server sets stopped and expired, and pending carries no information. */
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

static int check_symbol_request(const struct recording_request *wanted, struct error *error)
{
    if (!*wanted->service || strlen(wanted->service) > 256)
        return error_set(error, -EINVAL, "A recording requires a service of at most 256 bytes.");
    if (!wanted->rate_hz || wanted->rate_hz > RECORDING_RATE_MAX)
        return error_set(error, -EINVAL, "The rate of a recording must be from 1 to %d per second.",
                         RECORDING_RATE_MAX);
    if (!wanted->seconds || wanted->seconds > RECORDING_SECONDS_MAX)
        return error_set(error, -EINVAL,
                         "The duration of a recording must be from 1 to %d seconds.",
                         RECORDING_SECONDS_MAX);
    if (!wanted->wait_s || wanted->wait_s > RECORDING_WAIT_MAX_S)
        return error_set(error, -EINVAL, "wait_seconds must be from 1 to %d.",
                         RECORDING_WAIT_MAX_S);
    size_t length = strlen(wanted->name);
    if (length >= RECORDING_NAME_BYTES ||
        strspn(wanted->name,
               "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-._ ") != length)
        return error_set(error, -EINVAL,
                         "The name of a recording has at most %d letters, digits, spaces, dashes, "
                         "dots and underscores.",
                         RECORDING_NAME_BYTES - 1);
    return 0;
}

static bool is_meant(const struct fleet_agent *agent, const struct selector *selector,
                     struct matching *matching, const struct recording_request *wanted)
{
    bool meant = !wanted->host_count;
    for (size_t i = 0; i < wanted->host_count; i++)
        meant = meant || !strcmp(wanted->hosts[i], agent->host);
    return meant && agent_is_selected(agent, selector, matching);
}

static int add_parts(struct recording *recording, const struct agent_table *agents,
                     const struct recording_request *wanted, int64_t now_ns, struct error *error)
{
    _cleanup_selector_ struct selector selector = {0};
    struct match_budget budget = {.limit_ns = SELECT_NS};
    struct matching matching;
    size_t silent = 0, capacity = 0;
    int r = selector_parse(wanted->selector, strlen(wanted->selector), &selector, error);
    if (r < 0)
        return r;
    matching_begin(&matching, &budget);
    for (size_t i = 0; i < agents->count; i++) {
        const struct fleet_agent *agent = agents->list[i];
        bool meant = is_meant(agent, &selector, &matching, wanted);
        if (matching_check(&matching, error) < 0)
            return -EINVAL;
        if (!meant)
            continue;
        if (agent_silent(agent, now_ns)) {
            silent++;
            continue;
        }
        if (recording->part_count == RECORDING_PARTS_MAX)
            return error_set(error, -EINVAL,
                             "More than %d agents match; choose fewer by hosts or a selector.",
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
                     "No reporting agent matches (%zu agents known, %zu matching ones silent); "
                     "`assay agents` lists them.",
                     agents->count, silent);
}

/* The number of bytes, of at most `limit`, that are whole characters of a text. */
static size_t whole(const char *text, size_t most)
{
    size_t length = 0, all = strlen(text), next;
    while (length < all && (next = utf8_sequence(text + length, all - length)) &&
           length + next <= most)
        length += next;
    return length;
}

static void name_it(struct recording *recording, const struct recording_request *wanted,
                    int64_t now_ns)
{
    char when[24];
    time_t seconds = now_ns / 1000000000;
    struct tm utc;
    snprintf(recording->id, sizeof(recording->id), "r%010llx",
             (unsigned long long)(random_bits() & 0xffffffffffu));
    gmtime_r(&seconds, &utc);
    strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &utc);
    if (*wanted->name)
        snprintf(recording->name, sizeof(recording->name), "%s", wanted->name);
    else
        snprintf(recording->name, sizeof(recording->name), "%.*s-%s",
                 (int)whole(wanted->service, 40), wanted->service, when);
}

int recording_add(struct recording_book *book, const struct agent_table *agents,
                  const struct recording_request *wanted, int64_t now_ns, struct recording **ret,
                  struct error *error)
{
    int r = check_symbol_request(wanted, error);
    if (r < 0)
        return r;
    struct recording *recording = memory_zalloc(1, sizeof(*recording));
    name_it(recording, wanted, now_ns);
    snprintf(recording->by, sizeof(recording->by), "%s", wanted->by);
    recording->service = memory_strdup(wanted->service);
    recording->selector = memory_strdup(wanted->selector);
    recording->rate_hz = wanted->rate_hz;
    recording->seconds = wanted->seconds;
    recording->created_ns = now_ns;
    recording->expires_ns = now_ns + (int64_t)wanted->wait_s * 1000000000;
    r = add_parts(recording, agents, wanted, now_ns, error);
    if (!r && book->count >= RECORDINGS_MAX && !make_room(book))
        r = error_set(error, -EBUSY, "%d recordings are unfinished; stop one of them first.",
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

void recording_write_orders(const struct recording_book *book, const char *agent,
                            struct buffer *out)
{
    struct json_writer json = json_writer(out);
    json_write_array(&json);
    for (size_t i = 0; i < book->count; i++) {
        const struct recording *recording = book->list[i];
        for (size_t k = 0; k < recording->part_count; k++) {
            const struct recording_part *part = &recording->parts[k];
            if (recording_state_over(part->state) || strcmp(part->agent, agent))
                continue;
            json_write_object(&json);
            json_member_text(&json, "id", recording->id);
            json_member_text(&json, "name", recording->name);
            json_member_text(&json, "service", recording->service);
            json_member_unsigned(&json, "rate", recording->rate_hz);
            json_member_unsigned(&json, "seconds", recording->seconds);
            json_member_text(&json, "state", state_names[part->state]);
            json_member_bool(&json, "stop", recording->stopped);
            json_write_object_end(&json);
        }
    }
    json_write_array_end(&json);
}

void recording_write_parts(const struct recording *recording, const char *key,
                           struct json_writer *json)
{
    json_write_key(json, key);
    json_write_array(json);
    for (size_t i = 0; i < recording->part_count; i++) {
        const struct recording_part *part = &recording->parts[i];
        json_write_object(json);
        json_member_text(json, "agent", part->agent);
        json_member_text(json, "host", part->host);
        json_member_text(json, "reason", part->reason);
        json_member_text(json, "state", state_names[part->state]);
        json_member_unsigned(json, "samples", part->samples);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

static void write_states(const struct recording *recording, struct json_writer *json)
{
    size_t counts[RECORDING_STATES] = {0};
    for (size_t i = 0; i < recording->part_count; i++)
        counts[recording->parts[i].state]++;
    json_write_key(json, "agents_by_state");
    json_write_object(json);
    for (unsigned i = 0; i < RECORDING_STATES; i++)
        if (counts[i])
            json_member_unsigned(json, state_names[i], counts[i]);
    json_write_object_end(json);
}

void recording_write(const struct recording *recording, bool with_parts, struct buffer *out)
{
    struct json_writer json = json_writer(out);
    json_write_object(&json);
    json_member_text(&json, "id", recording->id);
    json_member_text(&json, "name", recording->name);
    json_member_text(&json, "service", recording->service);
    json_member_text(&json, "selector", recording->selector);
    json_member_text(&json, "by", recording->by);
    json_member_unsigned(&json, "rate", recording->rate_hz);
    json_member_unsigned(&json, "seconds", recording->seconds);
    json_member_fixed(&json, "created", (double)recording->created_ns / 1e9, 3);
    json_member_fixed(&json, "expires", (double)recording->expires_ns / 1e9, 3);
    json_member_bool(&json, "stopped", recording->stopped);
    json_member_text(&json, "state", state_names[recording_state(recording)]);
    json_member_unsigned(&json, "samples", recording_samples(recording));
    write_states(recording, &json);
    if (with_parts)
        recording_write_parts(recording, "agents", &json);
    json_write_object_end(&json);
}
