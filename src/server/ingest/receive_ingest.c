// SPDX-License-Identifier: Apache-2.0
// Takes what Pyroscope's clients send to /ingest: forms, and bodies of many formats.

#include <string.h>

#include "base/text.h"
#include "io/json.h"
#include "query/query.h"
#include "server/ingest/prefix_tree.h"
#include "server/ingest/receive.h"

static int ingest_times(struct receipt *receipt, struct error *error)
{
    const char *from = http_request_query(receipt->request, "from");
    const char *until = http_request_query(receipt->request, "until");
    int64_t now = receipt->source.received_ns;
    int r = 0;
    if (from && *from)
        r = query_time(from, now, &receipt->source.from_ns, error);
    if (!r && until && *until)
        r = query_time(until, now, &receipt->source.to_ns, error);
    return r;
}

/* The formats of bodies. Those that are counted have one type, which the application's name tells,
 * and values that are numbers of samples. */
enum ingest_body { BODY_PROFILE, BODY_LINES, BODY_TREE, BODY_TRIE };

struct ingest_format {
    const char *name, *content_type;
    const struct format *format;
    bool counted;
    enum ingest_body body;
};

static const struct ingest_format formats[] = {
    {"pprof", NULL, &format_pprof, false, BODY_PROFILE},
    {"jfr", NULL, &format_jfr, false, BODY_PROFILE},
    {"groups", NULL, &format_folded, true, BODY_PROFILE},
    {"folded", NULL, &format_folded, true, BODY_PROFILE}, /* as its documentation calls it */
    {"collapsed", NULL, &format_folded, true, BODY_PROFILE},
    {"lines", NULL, &format_folded, true, BODY_LINES},
    {"tree", "binary/octet-stream+tree", NULL, true, BODY_TREE},
    {"trie", "binary/octet-stream+trie", NULL, true, BODY_TRIE},
    {"speedscope", NULL, &format_speedscope, false, BODY_PROFILE},
};

/* Without a name it is what the content's type says, a form's pprof, or what was there first:
 * folded stacks. */
static const struct ingest_format *choose_format(struct http_request *request, struct error *error)
{
    const char *name = http_request_query(request, "format");
    bool form = http_request_is_type(request, "multipart/form-data");
    for (size_t i = 0; i < ARRAY_LENGTH(formats); i++)
        if (name && *name
                ? !strcmp(name, formats[i].name)
                : formats[i].content_type && http_request_is_type(request, formats[i].content_type))
            return &formats[i];
    if (!name || !*name)
        return &formats[form ? 0 : 2];
    error_set(
        error, -ENOTSUP,
        "Unsupported format \"%.40s\"; use pprof, jfr, groups, lines, tree, trie or speedscope.",
        name);
    return NULL;
}

/* ---- forms ---- */

/* Clients' settings of sample types: {"alloc_space":{"cumulative":true,"display-name":"x"}}. They
 * also have units and aggregation, which are ignored: a profile has its own units, and values are
 * added up. */
struct type_config {
    struct arena arena;
    const char *cumulative[INGEST_CONFIG_TYPES + 1]; /* ended by NULL */
    struct ingest_display displays[INGEST_CONFIG_TYPES + 1];
    size_t cumulative_count, display_count;
};

static int read_type(struct type_config *config, struct json *json, const char *type)
{
    struct json_string key, text;
    bool cumulative = false;
    const char *display = NULL;
    if (json_null(json))
        return 0;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "cumulative") && !json_null(json))
            r = json_bool(json, &cumulative);
        else if (json_is(&key, "display-name") && (r = json_string(json, &text)) >= 0)
            display = arena_strndup(&config->arena, text.data, text.length);
    }
    if (cumulative && config->cumulative_count < INGEST_CONFIG_TYPES)
        config->cumulative[config->cumulative_count++] = type;
    if (display && *display && config->display_count < INGEST_CONFIG_TYPES)
        config->displays[config->display_count++] =
            (struct ingest_display){.type = type, .name = display};
    return r;
}

static int read_config(struct type_config *config, const char *data, size_t length,
                       struct error *error)
{
    struct source source;
    struct json_string key;
    if (!length)
        return 0;
    int r = source_open_memory(&source, "sample_type_config", data, length, 1u << 20, error);
    if (r < 0)
        return r;
    {
        _cleanup_json_ struct json json;
        json_init(&json, &source, error);
        bool none = json_null(&json);
        r = none ? 0 : json_object(&json);
        while (!none && r >= 0 && (r = json_next_key(&json, &key)) > 0)
            r = read_type(config, &json, arena_strndup(&config->arena, key.data, key.length));
        if (r >= 0)
            r = json_end(&json);
    }
    source_release(&source);
    return r < 0 ? r : 0;
}

/* Labels of a recording's contexts, compressed or not. They live as long as the source. */
static int read_context_labels(struct receipt *receipt, const struct multipart_part *part,
                               struct source *source, struct error *error)
{
    uint64_t limit = ingest_limits(receipt->server->ingest).expansion_bytes;
    source_release(source);
    int r = source_open_memory(source, "labels", part->data, part->length, limit, error);
    if (!r)
        r = source_need_all(source, limit, error);
    if (r < 0)
        return r;
    receipt->context_labels = source_data(source);
    receipt->context_labels_length = source_available(source);
    return 0;
}

/* The parts come in any order, and the profile needs the settings of its types and contexts
 * first. */
static int ingest_form(struct receipt *receipt, const void *body, size_t length,
                       const struct format *format, struct error *error)
{
    const char *type = http_request_header(receipt->request, "Content-Type");
    struct type_config config = {0};
    struct source labels = {0};
    struct multipart parts;
    struct multipart_part part;
    bool found = false;
    int r = multipart_init(&parts, type, body, length, error);
    while (!r && (r = multipart_next(&parts, &part, error)) > 0)
        r = !strcmp(part.name, "sample_type_config")
                ? read_config(&config, part.data, part.length, error)
            : !strcmp(part.name, "labels") && format == &format_jfr
                ? read_context_labels(receipt, &part, &labels, error)
                : 0;
    receipt->source.cumulative = config.cumulative;
    receipt->source.displays = config.displays;
    if (!r)
        r = multipart_init(&parts, type, body, length, error);
    while (!r && (r = multipart_next(&parts, &part, error)) > 0) {
        r = 0;
        if (!strcmp(part.name, "prev_profile") && part.length) {
            r = error_set(error, -ENOTSUP,
                          "Unsupported: the client is too old and sends the previous profile too; "
                          "send deltas.");
        } else if (!strcmp(part.name, "profile") || !strcmp(part.name, "jfr")) {
            found = true;
            /* Nothing happened since the last profile; that is not an error. */
            if (part.length || format != &format_pprof)
                r = receipt_read_memory(receipt, part.data, part.length, format, error);
        }
    }
    if (!r && !found)
        r = error_set(error, -EBADMSG, "The form has no part \"profile\" or \"jfr\".");
    receipt->source.cumulative = NULL;
    receipt->source.displays = NULL;
    receipt->context_labels = NULL;
    source_release(&labels);
    arena_release(&config.arena);
    return r;
}

/* ---- bodies ---- */

/* One stack per line, each a sample: what folded is without its count. */
static void lines_to_folded(const char *text, size_t length, struct buffer *out)
{
    for (const char *end = text + length; text < end;) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t line = (size_t)((newline ? newline : end) - text);
        size_t shown = line - (line && text[line - 1] == '\r');
        if (shown) {
            buffer_add(out, text, shown);
            buffer_add_text(out, " 1\n");
        }
        text += line + (newline != NULL);
    }
}

static int read_prefix_tree(struct receipt *receipt, const void *body, size_t length, bool trie,
                            struct error *error)
{
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, INGEST_DETAIL);
    int r = prefix_tree_read(body, length, trie, ingest_limits(receipt->server->ingest).samples,
                             &profile, error);
    return r < 0 ? r : ingest_batch_add(&receipt->batch, &receipt->source, &profile, error);
}

static int read_body(struct receipt *receipt, const struct ingest_format *format,
                     struct http_source **source, struct error *error)
{
    const uint8_t *body = NULL;
    size_t length = 0;
    int r = receipt_body(receipt, source, &body, &length, error);
    if (r < 0)
        return r;
    if (http_request_is_type(receipt->request, "multipart/form-data"))
        return format->format ? ingest_form(receipt, body, length, format->format, error)
                              : error_set(error, -ENOTSUP, "Trees are not supported in forms.");
    if (format->body == BODY_TREE || format->body == BODY_TRIE)
        return read_prefix_tree(receipt, body, length, format->body == BODY_TRIE, error);
    if (!length && format->format == &format_pprof)
        return 0;
    if (format->body == BODY_PROFILE)
        return receipt_read_memory(receipt, body, length, format->format, error);
    _cleanup_buffer_ struct buffer folded = {0};
    lines_to_folded((const char *)body, length, &folded);
    return receipt_read_memory(receipt, folded.data, folded.length, format->format, error);
}

/* A service that is named by a label may have another application's name, which is a label then
 * but for pprof; the name's end may tell the type. */
static void name_application(struct receipt *receipt, const char *given_name,
                             const struct ingest_format *format, uint64_t rate)
{
    struct labels *labels = &receipt->labels;
    given_name += strspn(given_name, " \t");
    size_t length = strcspn(given_name, "{");
    while (length && strchr(" \t", given_name[length - 1]))
        length--;
    _cleanup_free_ char *application = memory_strndup(given_name, length);
    bool other = strcmp(application, labels_get(labels, LABEL_SERVICE_NAME)) && *application;
    if (format->counted || format->format == &format_speedscope) {
        struct ingest_source *source = &receipt->source;
        source->type = ingest_suffix_type(application, rate, &source->factor);
        source->in_units = !format->counted;
    }
    if (!other && *application)
        labels_set(labels, LABEL_SERVICE_NAME, application);
    else if (other && format->format != &format_pprof && !labels_get(labels, "app_name"))
        labels_set(labels, "app_name", application);
}

static int read_ingest(struct receipt *receipt, struct http_source **source, struct error *error)
{
    struct http_request *request = receipt->request;
    const char *given_name = http_request_query(request, "name");
    const char *rate_text = http_request_query(request, "sampleRate");
    const char *spy = http_request_query(request, "spyName");
    uint64_t rate = 0;
    if (!given_name)
        return error_set(error, -EINVAL,
                         "The parameter name is missing: name=service{label=value}.");
    const struct ingest_format *format = choose_format(request, error);
    if (!format)
        return error->code;
    int r = ingest_parse_name(given_name, &receipt->labels, error);
    if (!r)
        r = ingest_times(receipt, error);
    if (r < 0)
        return r;
    if (spy && *spy) {
        labels_set(&receipt->labels, "pyroscope_spy", spy);
        receipt->source.underscores = !strcmp(spy, "dotnetspy");
    }
    if (format->format == &format_pprof && spy)
        receipt->scripts = !strcmp(spy, "pyspy")                                ? SCRIPTS_RELATIVE
                           : !strcmp(spy, "rbspy") || !strcmp(spy, "scripting") ? SCRIPTS_ALL
                                                                                : SCRIPTS_NONE;
    if (rate_text) /* one that can't be is as good as none */
        text_to_u64(rate_text, strlen(rate_text), &rate);
    static const char *const of_recordings[] = {"thread", "class", "state", "context_id", NULL};
    /* A recording's chunks begin when it was switched on, and not with what the client sends. */
    receipt->source.times_given = format->format == &format_jfr;
    if (format->format == &format_jfr) /* too many for series, and Pyroscope's aren't split so */
        receipt->source.unkept = of_recordings;
    name_application(receipt, given_name, format, rate);
    return read_body(receipt, format, source, error);
}

void receive_ingest(struct http_request *request, void *server)
{
    _cleanup_receipt_ struct receipt receipt;
    struct error error = {0};
    struct http_source *source = NULL;
    if (!receipt_init(&receipt, request, server))
        return;
    int r = read_ingest(&receipt, &source, &error);
    if (receipt_finish(&receipt, r, &error))
        http_respond_text(request, 200, "text/plain", "");
    http_source_close(source);
}
