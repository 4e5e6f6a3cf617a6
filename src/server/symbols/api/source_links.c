// SPDX-License-Identifier: Apache-2.0
// Links from lines to the repository: templates of the configuration, and for a selection the ones
// that fit, each with the commit that its latest series is of. See source_links.h.

#include "server/symbols/api/source_links.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "io/json_write.h"
#include "label/glob.h"
#include "server/handler/parameters.h"
#include "server/query/context.h"
#include "server/symbols/api/symbols_api.h"

#define URL_BYTES_MAX 2048
#define COMMIT_BYTES_MAX 128
#define ANSWERS_MAX 256 /* a service and a template each */

static const char *const usual_labels[] = {"commit",
                                           "git_commit",
                                           "service_git_ref",
                                           "vcs_ref_head_revision",
                                           "vcs.ref.head.revision",
                                           "revision",
                                           "service_version",
                                           "service.version",
                                           "version"};

/* ---- templates ---- */

static size_t placeholder(const char *at)
{
    static const char *const known[] = {"{commit}", "{path}", "{line}"};
    for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
        if (!strncmp(at, known[i], strlen(known[i])))
            return strlen(known[i]);
    return 0;
}

const char *source_link_problem(const char *url)
{
    const char *host = !strncmp(url, "https://", 8)  ? url + 8
                       : !strncmp(url, "http://", 7) ? url + 7
                                                     : NULL;
    if (!host)
        return "must begin with https:// or http://";
    size_t length = strcspn(host, "/?#");
    if (!length || host[length] != '/' || memchr(host, '{', length) || memchr(host, '@', length))
        return "requires a host and a path after it: {commit}, {path} and {line} can't be in the "
               "host";
    if (strlen(url) > URL_BYTES_MAX)
        return "is too long";
    for (const char *at = url; *at; at++) {
        if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7f || strchr("\"'<>\\^`|", *at))
            return "has a character that is invalid in a URL; write it as %XX";
        if (*at == '}' || (*at == '{' && !placeholder(at)))
            return "has braces other than {commit}, {path} and {line}";
        if (*at == '{')
            at += placeholder(at) - 1;
    }
    return strstr(url, "{path}") ? NULL : "has no {path}";
}

static void read_one(struct source_link *link, struct problems *problems,
                     const struct yaml_node *node)
{
    struct settings section;
    settings_open(&section, problems, node, "A link of source_links");
    settings_string(&section, "url", &link->url);
    settings_string(&section, "commit", &link->commit);
    link->services = settings_strings(&section, "services");
    link->strip = settings_strings(&section, "strip");
    link->commit_labels = settings_strings(&section, "commit_labels");
    settings_close(&section);
    const char *problem = link->url ? source_link_problem(link->url) : "is missing";
    if (problem)
        problems_add(problems, node, "The url of a link in source_links %s", problem);
}

struct source_link *source_links_read(struct settings *settings, size_t *ret_count)
{
    const struct yaml_node *list = settings_list(settings, "source_links");
    *ret_count = 0;
    if (!list || !list->count)
        return NULL;
    if (list->count > SOURCE_LINKS_MAX) {
        problems_add(settings->problems, list, "The limit of source_links is %d links",
                     SOURCE_LINKS_MAX);
        return NULL;
    }
    struct source_link *links = memory_zalloc(list->count, sizeof(*links));
    for (size_t i = 0; i < list->count; i++)
        read_one(&links[(*ret_count)++], settings->problems, list->values[i]);
    return links;
}

bool source_link_is_for(const struct source_link *link, const char *service)
{
    for (size_t i = 0; link->services && i < link->services->count; i++)
        if (glob_matches(link->services->values[i]->text, service))
            return true;
    return !link->services;
}

/* ---- commits ---- */

/* Labels are untrusted: every sender of profiles chooses its own. */
static bool is_commit(const char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("._+/-", text[i]))
            return false;
    return length && length <= COMMIT_BYTES_MAX && !strstr(text, "..") && text[0] != '/';
}

const char *source_link_commit(const struct source_link *link, const struct labels *labels)
{
    size_t count = link->commit_labels ? link->commit_labels->count : ARRAY_LENGTH(usual_labels);
    for (size_t i = 0; i < count; i++) {
        const char *name =
            link->commit_labels ? link->commit_labels->values[i]->text : usual_labels[i];
        const char *value = labels_get(labels, name);
        if (value && is_commit(value))
            return value;
    }
    return link->commit;
}

static void add_escaped(struct buffer *out, const char *text)
{
    for (; *text; text++)
        if (isalnum((unsigned char)*text) || strchr("-._~/", *text))
            buffer_add_char(out, *text);
        else
            buffer_printf(out, "%%%02X", (unsigned char)*text);
}

bool source_link_fill(const struct source_link *link, const char *commit, struct buffer *out)
{
    const char *at = link->url, *next;
    for (; (next = strstr(at, "{commit}")); at = next + strlen("{commit}")) {
        if (!commit)
            return false;
        buffer_add(out, at, (size_t)(next - at));
        add_escaped(out, commit);
    }
    buffer_add_text(out, at);
    return true;
}

/* ---- which there are for a selection ---- */

struct answer {
    const struct source_link *link;
    char *service, *commit;
    int64_t last_ns;
};

struct answers {
    const struct server *server;
    struct answer list[ANSWERS_MAX];
    size_t count;
};

static void note(struct answers *answers, const struct source_link *link, const char *service,
                 const char *commit, int64_t last_ns)
{
    struct answer *answer = NULL;
    for (size_t i = 0; !answer && i < answers->count; i++)
        if (answers->list[i].link == link && !strcmp(answers->list[i].service, service))
            answer = &answers->list[i];
    if (!answer && answers->count == ANSWERS_MAX)
        return;
    if (!answer) {
        answer = &answers->list[answers->count++];
        *answer = (struct answer){.link = link, .service = memory_strdup(service)};
    }
    if (commit && (!answer->commit || last_ns > answer->last_ns)) {
        free(answer->commit);
        answer->commit = memory_strdup(commit);
        answer->last_ns = last_ns;
    }
}

static int note_series(void *context, const struct labels *labels, const char *type,
                       int64_t first_ns, int64_t last_ns)
{
    struct answers *answers = context;
    const char *service = labels_get(labels, LABEL_SERVICE_NAME);
    (void)type;
    (void)first_ns;
    for (size_t i = 0; service && i < answers->server->source_link_count; i++) {
        const struct source_link *link = &answers->server->source_links[i];
        if (source_link_is_for(link, service))
            note(answers, link, service, source_link_commit(link, labels), last_ns);
    }
    return 0;
}

static int by_order(const void *left, const void *right)
{
    const struct answer *a = left, *b = right;
    int order = strcmp(a->service, b->service);
    return order ? order : (a->link > b->link) - (a->link < b->link);
}

static void put_answer(struct json_writer *json, const struct answer *answer)
{
    _cleanup_buffer_ struct buffer url = {0};
    if (!source_link_fill(answer->link, answer->commit, &url))
        return;
    json_write_line(json);
    json_write_object(json);
    json_member_text(json, "service", answer->service);
    json_member_text(json, "url", buffer_text(&url));
    if (answer->commit)
        json_member_text(json, "commit", answer->commit);
    else
        json_member_null(json, "commit");
    json_write_key(json, "strip");
    json_write_array(json);
    for (size_t i = 0; answer->link->strip && i < answer->link->strip->count; i++)
        json_write_text(json, answer->link->strip->values[i]->text);
    json_write_array_end(json);
    json_write_object_end(json);
}

void source_links_get(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    _cleanup_query_context_ struct query_context query_context = {0};
    _cleanup_free_ struct answers *answers = memory_zalloc(1, sizeof(*answers));
    struct error error = {0};
    struct buffer out = {0};
    struct json_writer json = json_writer(&out);
    if (!parameters_known(request, "/api/v1/source_links"))
        return;
    answers->server = server;
    int r = query_context_read(&query_context, request, server, "", false, &error);
    if (!r && server->source_link_count)
        r = store_series(server->store, &query_context.selection, note_series, answers, &error);
    if (answers->count)
        qsort(answers->list, answers->count, sizeof(*answers->list), by_order);
    json_write_object(&json);
    json_write_key(&json, "links");
    json_write_array(&json);
    for (size_t i = 0; i < answers->count; i++) {
        put_answer(&json, &answers->list[i]);
        free(answers->list[i].service);
        free(answers->list[i].commit);
    }
    json_write_array_end(&json);
    json_write_object_end(&json);
    buffer_add_char(&out, '\n');
    if (r < 0)
        http_respond_failure(request, &error);
    else
        api_respond(request, "application/json", &out);
    buffer_release(&out);
}
