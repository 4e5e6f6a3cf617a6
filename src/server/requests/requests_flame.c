// SPDX-License-Identifier: Apache-2.0
// GET /api/v1/requests/flame: what the requests of a band did, as a flame graph.

#include <string.h>

#include "format/picture/pictures.h"
#include "profile/views/calltree.h"
#include "server/admission/admission.h"
#include "server/handler/answer.h"
#include "server/handler/parameters.h"
#include "server/requests/requests_samples.h"

#define DEFAULT_NODES 8192
#define NODES_MAX (1u << 20)

int requests_profiles_open(struct requests_query *query, struct http_request *request,
                           struct query_context *profiles, struct error *error)
{
    struct query_asker asker = {0};
    _cleanup_buffer_ struct buffer text = {0};
    const char *type = http_request_query(request, "type");
    if (!type || !*type)
        type = *query->query.type ? query->query.type : "cpu";
    /* Requests span services: samples of all services count. */
    buffer_printf(&text, "%s{}", type);
    int r = query_asker_read(request, &asker, error);
    if (!r)
        r = admit_rest(error);
    if (!r)
        r = query_context_open(profiles, query->server, &asker, buffer_text(&text),
                               query->spans.from_ns, query->spans.to_ns, true, error);
    admit_limits(query->server->admissions, &profiles->limits);
    return r;
}

static int write_flame(struct http_request *request, struct requests_query *query,
                       struct requests_samples *samples, const char *type, bool total,
                       uint64_t nodes, struct error *error)
{
    _cleanup_calltree_ struct calltree tree;
    _cleanup_profile_ struct profile profile;
    _cleanup_answer_ struct answer answer = {0};
    struct flame_options options = {.title = type};
    double requests = total ? 0 : (double)samples->in_band;
    answer_init(&answer, request, "application/json");
    calltree_init(&tree);
    profile_init(&profile, 0);
    int r = requests_profile(samples, query, type, true, requests, &profile, error);
    if (!r)
        r = calltree_add(&tree, &profile, CALLTREE_NEW, error);
    if (!r) {
        options.dropped = calltree_limit(&tree, (uint32_t)nodes);
        struct json_writer json = json_writer(&answer.out);
        json_write_object(&json);
        json_member_text(&json, "type", type);
        json_member_text(&json, "per", total ? "total" : "request");
        requests_evidence_write(samples, query, &json);
        json_write_key(&json, "flame");
        r = flamedata_write(&answer.out, &tree, &options, error);
        buffer_add_text(&answer.out, "}\n");
    }
    return answer_end(&answer, r, error);
}

void requests_flame(struct http_request *request, void *server)
{
    static const char *const words[] = {"request", "total", NULL};
    _cleanup_requests_query_ struct requests_query query = {0};
    _cleanup_query_context_ struct query_context profiles = {0};
    struct requests_samples samples = {0};
    struct error error = {0};
    uint64_t nodes = DEFAULT_NODES;
    unsigned per;
    if (!parameters_known(request, "/api/v1/requests/flame"))
        return;
    int r = parameter_number(request, "max_nodes", 1, NODES_MAX, &nodes, &error);
    if (!r)
        r = parameter_word(request, "per", words, 0, &per, &error);
    if (!r)
        r = requests_query_read(&query, request, server, &error);
    if (!r)
        r = requests_settle(&query, &error);
    if (!r)
        r = requests_profiles_open(&query, request, &profiles, &error);
    if (!r)
        r = requests_samples_gather(&samples, &query, &profiles, &error);
    if (!r)
        r = write_flame(request, &query, &samples, profiles.query.type, per == 1, nodes, &error);
    if (r < 0)
        http_respond_failure(request, &error);
    requests_samples_release(&samples);
}
