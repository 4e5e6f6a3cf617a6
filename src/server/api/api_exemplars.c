// SPDX-License-Identifier: Apache-2.0
// Samples with trace or span ids. The samples are gathered first, each stack once, and written
// after the store is released, so that the store never waits for a client.

#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "query/graft.h"
#include "query/naming/maps.h"
#include "query/naming/names.h"
#include "server/admission/admission.h"
#include "server/api/api.h"
#include "server/handler/answer.h"
#include "server/symbols/symbols.h"

#define EXEMPLARS_DEFAULT 100
#define EXEMPLARS_MAX 100000

struct found {
    struct store_exemplar exemplar; /* its node is one of the gathered profile */
    uint32_t labels;
};

struct gathering {
    uint64_t limit;
    size_t memory_bytes;       /* limit */
    struct query_links *links; /* only exemplars of these; NULL: all */
    struct found *list;
    size_t count, capacity;
    struct labels *labels; /* those of a series come together */
    size_t label_count, label_capacity, label_bytes;
    struct profile profile;
    struct graft graft;
    bool more; /* there are more than these */
};

static void gathering_clear(struct gathering *gathering)
{
    for (size_t i = 0; i < gathering->label_count; i++)
        labels_release(&gathering->labels[i]);
    graft_release(&gathering->graft);
    profile_release(&gathering->profile);
    profile_init(&gathering->profile, PROFILE_ALL);
    gathering->graft.to = &gathering->profile;
    gathering->count = gathering->label_count = gathering->label_bytes = 0;
}

static void gathering_release(struct gathering *gathering)
{
    gathering_clear(gathering);
    profile_release(&gathering->profile);
    free(gathering->list);
    free(gathering->labels);
}

static size_t gathered_bytes(const struct gathering *gathering)
{
    return profile_memory(&gathering->profile) + gathering->label_bytes +
           gathering->capacity * sizeof(*gathering->list) +
           gathering->label_capacity * sizeof(*gathering->labels) +
           (gathering->graft.frame_room + gathering->graft.node_room) * sizeof(uint32_t);
}

static uint32_t keep_labels(struct gathering *gathering, const struct labels *labels)
{
    size_t count = gathering->label_count;
    if (count && labels_equal(&gathering->labels[count - 1], labels))
        return (uint32_t)count - 1;
    array_reserve(gathering->labels, gathering->label_capacity, count + 1);
    struct labels *copy = &gathering->labels[gathering->label_count++];
    *copy = (struct labels){0};
    labels_copy(copy, labels);
    gathering->label_bytes += labels_memory(copy);
    return (uint32_t)count;
}

static int gather(void *context, const struct labels *labels, const struct profile *profile,
                  const struct store_exemplar *exemplar)
{
    struct gathering *gathering = context;
    if (gathering->links && !query_links_match(gathering->links, exemplar))
        return 0;
    gathering->more = gathering->count == gathering->limit;
    if (gathering->more)
        return 1;
    struct found found = {.exemplar = *exemplar, .labels = keep_labels(gathering, labels)};
    graft_from(&gathering->graft, profile);
    found.exemplar.node = graft_node(&gathering->graft, exemplar->node);
    array_reserve(gathering->list, gathering->capacity, gathering->count + 1);
    gathering->list[gathering->count++] = found;
    if (gathered_bytes(gathering) <= gathering->memory_bytes)
        return 0;
    if (admit_is_part())
        return -E2BIG;
    gathering->more = true;
    return 1;
}

static int gather_all(struct gathering *gathering, struct query_context *query_context,
                      struct server *server, struct query_symbols *symbols, const char *function,
                      struct error *error)
{
    int r;
    do {
        gathering_clear(gathering);
        gathering->memory_bytes = query_context->limits.memory_bytes;
        r = query_maps_exemplars(symbols_maps(server->symbols), symbols, server->store,
                                 &query_context->selection, function, &query_context->limits,
                                 gather, gathering, error);
    } while (query_context_again(query_context, &r, error));
    graft_release(&gathering->graft);
    return MIN(r, 0);
}

static void put_id(struct json_writer *json, const char *key, const uint8_t *bytes, size_t count)
{
    char text[2 * sizeof(((struct profile_link *)0)->trace_id) + 1];
    hex_encode(bytes, count, text);
    json_member_text(json, key, text);
}

/* The innermost frame first. */
static void put_stack(struct json_writer *json, const struct profile *profile, uint32_t node,
                      struct query_symbols *symbols)
{
    struct symbol_frame names[SYMBOL_FRAMES_MAX];
    for (; node && buffer_pass(json->out); node = profile->nodes[node].parent) {
        const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];
        size_t count = 1;
        names[0].name = NULL;
        if (frame->function)
            names[0].name = profile_text(profile, profile->functions[frame->function].name);
        else
            count = MAX(query_symbols_at(symbols, profile, profile->nodes[node].frame, names),
                        (size_t)1);
        for (size_t i = 0; i < count; i++) {
            char address[24];
            snprintf(address, sizeof(address), "0x%llx", (unsigned long long)frame->address);
            json_write_text(json, names[i].name ? names[i].name : address);
        }
    }
}

static void put_exemplars(const struct gathering *gathering, struct query_symbols *symbols,
                          struct json_writer *json)
{
    json_write_key(json, "exemplars");
    json_write_array(json);
    for (size_t i = 0; i < gathering->count && buffer_pass(json->out); i++) {
        const struct store_exemplar *exemplar = &gathering->list[i].exemplar;
        json_write_line(json);
        json_write_object(json);
        json_member_fixed(json, "time", (double)exemplar->time_ns / 1e9, 3);
        json_member_signed(json, "value", exemplar->value);
        put_id(json, "trace_id", exemplar->link.trace_id, sizeof(exemplar->link.trace_id));
        put_id(json, "span_id", exemplar->link.span_id, sizeof(exemplar->link.span_id));
        json_write_key(json, "labels");
        labels_write_json(&gathering->labels[gathering->list[i].labels], json);
        json_write_key(json, "stack");
        json_write_array(json);
        put_stack(json, &gathering->profile, exemplar->node, symbols);
        json_write_array_end(json);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

void api_exemplars(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    _cleanup_query_context_ struct query_context query_context = {0};
    struct error error = {0};
    _cleanup_(gathering_release) struct gathering gathering = {.limit = EXEMPLARS_DEFAULT};
    _cleanup_answer_ struct answer answer = {0};
    const char *name = http_request_query(request, "function");
    profile_init(&gathering.profile, PROFILE_ALL);
    answer_init(&answer, request, "application/json");
    if (!parameters_known(request, "/api/v1/exemplars"))
        return;
    _cleanup_query_symbols_ struct query_symbols symbols = {
        .store = server->symbols ? symbols_store(server->symbols) : NULL,
        .tenant = http_request_identity(request)->tenant};
    int r = parameter_number(request, "limit", 1, EXEMPLARS_MAX, &gathering.limit, &error);
    if (!r)
        r = query_context_read(&query_context, request, server, "", true, &error);
    if (!r)
        r = query_context_read_links(&query_context, request, &error);
    gathering.links = query_links_any(&query_context.links) ? &query_context.links : NULL;
    if (!r)
        r = gather_all(&gathering, &query_context, server, &symbols, name && *name ? name : NULL,
                       &error);
    if (!r) {
        answer.held_bytes = gathered_bytes(&gathering);
        struct json_writer json = json_writer(&answer.out);
        json_write_object(&json);
        put_exemplars(&gathering, &symbols, &json);
        api_put_unit(&json, query_context.query.type);
        json_member_bool(&json, "more", gathering.more);
        json_write_object_end(&json);
        buffer_add_char(&answer.out, '\n');
    }
    r = answer_end(&answer, r, &error);
    if (r < 0)
        http_respond_failure(request, &error);
}
