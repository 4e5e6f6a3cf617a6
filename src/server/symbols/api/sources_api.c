// SPDX-License-Identifier: Apache-2.0
// Source files in and out by our own API: a list of a build's files, the contents that are missing,
// and the text of one for views of lines. Each tenant has its own.

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "io/json_write.h"
#include "profile/views/rank.h"
#include "server/admission/admission.h"
#include "server/symbols/api/symbols_api.h"

#define PIECE_BYTES (64u << 10)
#define LIST_EXPANSION 8 /* bytes in memory for each of a list that is sent */
#define WAIT_MS 10000    /* for memory that others have */

static const char *tenant_of(const struct http_request *request)
{
    return http_request_identity(request)->tenant;
}

static int asked_build(struct http_request *request, char ret_key[SYMBOL_KEY_BYTES],
                       struct error *error)
{
    const char *build_id = http_request_query(request, "build_id");
    return build_id && *build_id
               ? symbols_asked_key(build_id, ret_key, error)
               : error_set(error, -EINVAL, "build_id is missing: sources belong to a build.");
}

/* From the account of all pushes and queries; 0: it is used up. */
static size_t take_memory(struct http_request *request, struct server *server, uint64_t bytes,
                          struct error *error)
{
    size_t taken = (size_t)MIN(bytes, (uint64_t)server->admissions->memory.limit_bytes / 2);
    if (budget_wait(&server->admissions->memory, taken, WAIT_MS, http_request_cancel_flag(request)))
        return taken;
    http_respond_header(request, "Retry-After", "1");
    error_set(error, -EAGAIN,
              "Pushes and queries have used up the server's memory limit; try again later.");
    return 0;
}

/* ---- in ---- */

static void put_missing(struct json_writer *json, struct buffer *missing)
{
    const char *line = buffer_text(missing), *end;
    for (; (end = strchr(line, '\n')); line = end + 1) {
        json_write_line(json);
        json_write_bytes(json, line, (size_t)(end - line));
    }
}

void sources_put_list(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    _cleanup_buffer_ struct buffer text = {0}, missing = {0}, out = {0};
    struct error error = {0};
    char key[SYMBOL_KEY_BYTES];
    size_t files = 0;
    if (!parameters_known(request, "/api/v1/sources"))
        return;
    int r = asked_build(request, key, &error);
    int64_t length = http_request_content_length(request);
    size_t memory = 0;
    if (!r && !(memory = take_memory(request, server,
                                     LIST_EXPANSION * (length < 0 ? SOURCE_LIST_BYTES_MAX
                                                                  : (uint64_t)length + PIECE_BYTES),
                                     &error)))
        r = error.code;
    if (!r)
        r = http_request_read_all(request, &text, &error);
    if (!r)
        r = source_store_put_list(symbols_sources(server->symbols), tenant_of(request), key, &text,
                                  &missing, &files, &error);
    budget_give(&server->admissions->memory, memory);
    if (r < 0) {
        http_respond_failure(request, &error);
        return;
    }
    struct json_writer json = json_writer(&out);
    json_write_object(&json);
    json_member_text(&json, "build_id", key);
    json_member_unsigned(&json, "files", files);
    json_write_key(&json, "missing");
    json_write_array(&json);
    put_missing(&json, &missing);
    json_write_array_end(&json);
    json_write_object_end(&json);
    buffer_add_char(&out, '\n');
    api_respond(request, "application/json", &out);
}

void sources_put(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    _cleanup_source_upload_ struct source_upload upload = {0};
    _cleanup_free_ char *piece = memory_alloc(PIECE_BYTES);
    struct buffer out = {0};
    struct error error = {0};
    ssize_t got = 0;
    if (!parameters_known(request, "/api/v1/sources/*"))
        return;
    int r = source_upload_begin(symbols_sources(server->symbols), &upload, &error);
    while (!r && (got = http_request_read(request, piece, PIECE_BYTES, &error)) > 0)
        r = source_upload_write(&upload, piece, (size_t)got, &error);
    if (!r && got < 0)
        r = (int)got;
    if (!r && http_request_cancelled(request))
        r = error_set(&error, -EINVAL, "The body is incomplete.");
    if (!r)
        r = source_upload_finish(&upload, tenant_of(request), http_request_rest(request), &error);
    if (r < 0) {
        http_respond_failure(request, &error);
        return;
    }
    struct json_writer json = json_writer(&out);
    json_write_object(&json);
    json_member_unsigned(&json, "bytes", upload.bytes);
    json_write_object_end(&json);
    buffer_add_char(&out, '\n');
    api_respond(request, "application/json", &out);
    buffer_release(&out);
}

/* ---- out ---- */

int sources_read(struct http_request *request, struct server *server, const char *key,
                 const char *path, struct buffer *ret_text, struct error *error)
{
    uint64_t limit = symbols_options(server->symbols)->source_file_bytes;
    size_t memory = take_memory(request, server, limit ? limit : SOURCE_FILE_BYTES_DEFAULT, error);
    if (!memory)
        return error->code;
    int r = source_store_read(symbols_sources(server->symbols), tenant_of(request), key, path,
                              ret_text, error);
    budget_give(&server->admissions->memory, memory);
    return r;
}

void sources_get(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    struct buffer text = {0};
    struct error error = {0};
    char key[SYMBOL_KEY_BYTES];
    const char *path = http_request_query(request, "path");
    if (!parameters_known(request, "/api/v1/source"))
        return;
    int r = asked_build(request, key, &error);
    if (!r && (!path || !*path))
        r = error_set(&error, -EINVAL, "path is missing: use the file path that lines returns.");
    if (!r)
        r = sources_read(request, server, key, path, &text, &error);
    if (r < 0) {
        http_respond_failure(request, &error);
        return;
    }
    http_respond_header(request, "X-Content-Type-Options", "nosniff");
    http_respond_header(request, "Cache-Control", "private, max-age=3600");
    http_respond(request, 200, "text/plain; charset=utf-8", &text);
    buffer_release(&text);
}

/* ---- which files of an answer there are ---- */

struct file_build {
    uint32_t file, build_id;
};

static int compare_builds(const void *left, const void *right)
{
    const struct file_build *a = left, *b = right;
    if (a->build_id != b->build_id)
        return a->build_id < b->build_id ? -1 : 1;
    return (a->file > b->file) - (a->file < b->file);
}

/* The builds that the frames of wanted files are from, each pair once. */
static struct file_build *find_pairs(const struct profile *profile, const bool *wanted,
                                     size_t *ret_count)
{
    struct file_build *pairs = NULL;
    size_t count = 0, capacity = 0, kept = 0;
    for (uint32_t i = 1; i < profile->frame_count; i++) {
        const struct profile_frame *frame = &profile->frames[i];
        struct file_build pair = {.file = profile->functions[frame->function].file,
                                  .build_id = profile->mappings[frame->mapping].build_id};
        if (!pair.file || !pair.build_id || !wanted[pair.file])
            continue;
        array_reserve(pairs, capacity, count + 1);
        pairs[count++] = pair;
    }
    if (count)
        qsort(pairs, count, sizeof(*pairs), compare_builds);
    for (size_t i = 0; i < count; i++)
        if (!i || compare_builds(&pairs[i], &pairs[kept - 1]))
            pairs[kept++] = pairs[i];
    *ret_count = kept;
    return pairs;
}

/* The pairs of one build, and what its frames cost. */
struct build_pairs {
    size_t first, end;
    int64_t weight;
};

static int heaviest_first(const void *left, const void *right)
{
    const struct build_pairs *a = left, *b = right;
    return (a->weight < b->weight) - (a->weight > b->weight);
}

/* Where several builds have a file, the one that cost most decides which text is shown. */
static struct build_pairs *order_builds(const struct profile *profile,
                                        const struct file_build *pairs, size_t count,
                                        size_t *ret_count)
{
    _cleanup_free_ int64_t *weights = memory_zalloc(profile->string_count, sizeof(*weights));
    _cleanup_free_ int64_t *values = profile->type_count ? profile_node_values(profile, 0) : NULL;
    struct build_pairs *builds = NULL;
    size_t capacity = 0, found = 0;
    for (uint32_t i = 1; values && i < profile->node_count; i++) {
        const struct profile_frame *frame = &profile->frames[profile->nodes[i].frame];
        int64_t *weight = &weights[profile->mappings[frame->mapping].build_id];
        *weight = add_saturated(*weight, values[i]);
    }
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first; end < count && pairs[end].build_id == pairs[first].build_id;)
            end++;
        array_reserve(builds, capacity, found + 1);
        builds[found++] = (struct build_pairs){first, end, weights[pairs[first].build_id]};
    }
    if (found)
        qsort(builds, found, sizeof(*builds), heaviest_first);
    *ret_count = found;
    return builds;
}

void sources_put_known(struct source_store *store, const char *tenant,
                       const struct profile *profile, bool *wanted, struct json_writer *json)
{
    size_t count, build_count, lists = 0;
    _cleanup_free_ struct file_build *pairs = find_pairs(profile, wanted, &count);
    _cleanup_free_ struct build_pairs *builds = order_builds(profile, pairs, count, &build_count);
    _cleanup_buffer_ struct buffer path = {0};
    json_write_key(json, "sources");
    json_write_array(json);
    for (size_t i = 0; i < build_count && lists < SOURCES_BUILDS_MAX; i++) {
        _cleanup_source_list_ struct source_list list = {0};
        char key[SYMBOL_KEY_BYTES];
        const char *id = profile_text(profile, pairs[builds[i].first].build_id);
        if (!symbol_key(id, key) || source_store_list(store, tenant, key, &list, NULL) < 0)
            continue;
        lists++;
        for (size_t k = builds[i].first; k < builds[i].end; k++) {
            const struct profile_string *file = &profile->strings[pairs[k].file];
            if (!wanted[pairs[k].file] || !source_path(file->data, file->length, &path) ||
                !source_list_find(&list, path.data))
                continue;
            wanted[pairs[k].file] = false; /* one build is enough */
            json_write_line(json);
            json_write_object(json);
            json_member_text(json, "file", file->data);
            json_member_text(json, "build_id", key);
            json_write_object_end(json);
        }
    }
    json_write_array_end(json);
}
