// SPDX-License-Identifier: Apache-2.0
// The fuzzer of what senders and askers put around profiles. Each of its programs is one parser, as
// FUZZ_TARGET says: forms, names of applications, trees of stacks, series of profiles, messages of
// calls, queries.

#include <stdlib.h>
#include <string.h>

#include "query/links.h"
#include "query/query.h"
#include "server/ingest/ingest.h"
#include "server/ingest/prefix_tree.h"
#include "server/ingest/receive.h"
#include "server/pyroscope/querier.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* The first line is the Content-Type, the rest the body. */
__attribute__((unused)) static void fuzz_multipart(const uint8_t *data, size_t length)
{
    struct multipart parts;
    struct multipart_part part;
    struct error error = {0};
    const uint8_t *newline = length ? memchr(data, '\n', length) : NULL;
    if (!newline)
        return;
    char *type = memory_strndup((const char *)data, (size_t)(newline - data));
    const char *body = (const char *)newline + 1, *end = (const char *)data + length;
    const char *before = body;
    int r = multipart_init(&parts, type, body, (size_t)(end - body), &error);
    while (!r && (r = multipart_next(&parts, &part, &error)) > 0) {
        require(part.data >= before && part.data + part.length <= end);
        require(memchr(part.name, 0, sizeof(part.name)));
        before = part.data + part.length;
        r = 0;
    }
    require(!r || error.text[0]);
    free(type);
}

__attribute__((unused)) static void fuzz_ingest_name(const uint8_t *data, size_t length)
{
    struct labels labels = {0};
    struct error error = {0};
    int64_t factor = 0;
    char *text = memory_strndup((const char *)data, length);
    if (!ingest_parse_name(text, &labels, &error)) {
        char *application = memory_strdup(labels_get(&labels, LABEL_SERVICE_NAME));
        require(*ingest_suffix_type(application, length, &factor) && factor > 0);
        free(application);
    } else {
        require(error.text[0]);
    }
    labels_release(&labels);
    free(text);
}

/* The first byte says which; values add up, and no name is longer than the input. */
__attribute__((unused)) static void fuzz_prefix_tree(const uint8_t *data, size_t length)
{
    _cleanup_profile_ struct profile profile;
    struct error error = {0};
    profile_init(&profile, PROFILE_ALL);
    if (!length)
        return;
    int r = prefix_tree_read(data + 1, length - 1, data[0] & 1, 10000, &profile, &error);
    require(!r || error.text[0]);
    require(profile.samples.count <= 10000 && profile.type_count == 1);
    for (size_t i = 0; i < profile.samples.count; i++)
        require(profile.samples.values[0][i] > 0 && profile.samples.node[i] < profile.node_count);
}

/* The first byte is the method and the form. What is read is read the same way again. */
__attribute__((unused)) static void fuzz_rpc(const uint8_t *data, size_t length)
{
    static const char *const methods[] = {"ProfileTypes",
                                          "LabelNames",
                                          "LabelValues",
                                          "Series",
                                          "SelectMergeStacktraces",
                                          "SelectMergeProfile",
                                          "SelectSeries",
                                          "SelectHeatmap",
                                          "Diff",
                                          "AnalyzeQuery",
                                          "GetProfileStats",
                                          "SelectMergeSpanProfile"};
    struct error error = {0};
    if (!length)
        return;
    const struct rpc_field *fields =
        querier_fields(methods[(data[0] >> 1) % ARRAY_LENGTH(methods)]);
    struct rpc_request request = {.json = data[0] & 1};
    require(fields);
    int r = rpc_parse(data + 1, length - 1, fields, &request, &error);
    require(r <= 0 && (!r || error.text[0]));
    if (!r) {
        require(request.profile_type && request.label_selector && request.name);
        struct query query = {0};
        if (!query_parse(request.label_selector, &query, NULL))
            query_release(&query);
        struct query_links links = {0};
        for (size_t i = 0; i < request.spans.count; i++)
            query_links_add(&links, QUERY_SPAN, request.spans.list[i], NULL);
        query_links_release(&links);
    }
    rpc_release(&request);
}

/* Queries, times and ids as parameters have them, and pprof on its way to JSON. */
__attribute__((unused)) static void fuzz_query_context(const uint8_t *data, size_t length)
{
    struct error error = {0};
    struct query query = {0};
    struct query_links links = {0};
    char *text = memory_strndup((const char *)data, length);
    int64_t ns = -1;
    if (!query_parse(text, &query, &error)) {
        require(strlen(query.type) < QUERY_TYPE_BYTES);
        query_type_fits(query.type, "cpu");
        query_type_fits("process_cpu:cpu:nanoseconds:cpu:nanoseconds", query.type);
        query_release(&query);
    } else {
        require(error.text[0]);
    }
    int r = query_time(text, 1794700000000000000ll, &ns, &error);
    require(!r || ns == -1);
    for (int kind = 0; kind < QUERY_LINK_KINDS; kind++)
        query_links_add(&links, (enum query_link_kind)kind, text, &error);
    struct store_exemplar exemplar = {.time_ns = 1};
    query_links_match(&links, &exemplar);
    query_links_release(&links);
    free(text);
    struct buffer out = {0};
    protojson_profile(data, length, &out, &error);
    buffer_release(&out);
}

/* Series of raw profiles: the first byte says in which form, and whose. Nothing is stored. */
__attribute__((unused)) static void fuzz_series(const uint8_t *data, size_t length)
{
    static struct ingest ingest;
    static struct server server = {.ingest = &ingest};
    struct error error = {0};
    if (!server.store) {
        require(!store_open_memory(&(struct store_options){0}, &server.store, &error));
        pthread_rwlock_init(&ingest.rules_lock, NULL);
        label_rules_init(&ingest.rules);
        ingest.store = server.store;
        ingest.deltas = deltas_new(1u << 20);
        ingest.limits = (struct ingest_limits){.expansion_bytes = 1u << 20,
                                               .samples = 10000,
                                               .series = 100,
                                               .depth = 64,
                                               .clock_skew_ns = 1};
    }
    if (!length)
        return;
    struct receipt receipt = {.server = &server, .parca = data[0] & 2};
    receipt.source = (struct ingest_source){
        .labels = &receipt.labels, .factor = 1, .received_ns = 1794700000000000000};
    receipt.batch =
        (struct ingest_batch){.ingest = server.ingest, .tenant = "t", .seen = &receipt.seen};
    int r;
    if (data[0] & 1) {
        struct source source;
        r = source_open_memory(&source, "series", data + 1, length - 1, 1u << 20, &error);
        if (!r) {
            r = receipt_read_json(&receipt, &source, &error);
            source_release(&source);
        }
    } else {
        r = receipt_read_wire(&receipt, data + 1, length - 1, &error);
    }
    require(r >= 0 || error.text[0]);
    receipt_release(&receipt);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    FUZZ_TARGET(data, length);
    return 0;
}
