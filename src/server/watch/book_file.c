// SPDX-License-Identifier: Apache-2.0
// Marks and findings on disk: JSON, written whole. docs/formats/watch.md describes it.

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "io/document.h"
#include "io/json_write.h"
#include "server/watch/book.h"

#define FILE_BYTES_MAX (256u << 20)
#define FILE_VERSION 1

/* ---- writing ---- */

static void write_mark(const struct watch_mark *mark, struct json_writer *json)
{
    json_write_line(json);
    json_write_object(json);
    json_member_signed(json, "time", mark->time_ns);
    json_member_text(json, "service", mark->service);
    json_member_text(json, "version", mark->version);
    json_member_text(json, "text", mark->text);
    json_member_text(json, "by", mark->by);
    json_member_unsigned(json, "looks", mark->looks);
    json_write_object_end(json);
}

static void write_finding(const struct watch_finding *finding, struct json_writer *json)
{
    json_write_line(json);
    json_write_object(json);
    json_member_text(json, "id", finding->id);
    json_member_text(json, "kind", watch_kind_names[finding->kind]);
    json_member_text(json, "service", finding->service);
    json_member_text(json, "version", finding->version);
    json_member_text(json, "base_version", finding->base_version);
    json_member_text(json, "type", finding->type);
    json_member_text(json, "function", finding->function);
    json_member_text(json, "unit", finding->unit);
    json_member_signed(json, "opened", finding->opened_ns);
    json_member_signed(json, "seen", finding->seen_ns);
    json_member_signed(json, "closed_at", finding->closed_ns);
    json_member_signed(json, "base_from", finding->base_from_ns);
    json_member_signed(json, "base_to", finding->base_to_ns);
    json_member_signed(json, "from", finding->from_ns);
    json_member_signed(json, "to", finding->to_ns);
    json_member_number(json, "growth", finding->growth);
    json_member_number(json, "growth_low", finding->growth_low);
    json_member_number(json, "growth_high", finding->growth_high);
    json_member_number(json, "base_share", finding->base_share);
    json_member_number(json, "share", finding->share);
    json_member_number(json, "slope", finding->slope);
    json_member_number(json, "slope_low", finding->slope_low);
    json_member_number(json, "slope_high", finding->slope_high);
    json_member_number(json, "site_bytes", finding->site_bytes);
    json_member_number(json, "process_bytes", finding->process_bytes);
    json_member_number(json, "limit_bytes", finding->limit_bytes);
    json_member_unsigned(json, "misses", finding->misses);
    json_member_text(json, "closed", watch_close_names[finding->closed]);
    json_write_object_end(json);
}

void watch_book_write(const struct watch_book *book, struct buffer *out)
{
    struct json_writer json = json_writer(out);
    json_write_object(&json);
    json_member_signed(&json, "version", FILE_VERSION);
    json_write_key(&json, "tenants");
    json_write_array(&json);
    for (size_t i = 0; i < book->tenant_count; i++) {
        const struct watch_tenant *tenant = &book->tenants[i];
        json_write_line(&json);
        json_write_object(&json);
        json_member_text(&json, "name", tenant->name);
        json_write_key(&json, "marks");
        json_write_array(&json);
        for (size_t k = 0; k < tenant->mark_count; k++)
            write_mark(&tenant->marks[k], &json);
        json_write_array_end(&json);
        json_write_key(&json, "findings");
        json_write_array(&json);
        for (size_t k = 0; k < tenant->finding_count; k++)
            write_finding(&tenant->findings[k], &json);
        json_write_array_end(&json);
        json_write_object_end(&json);
    }
    json_write_array_end(&json);
    json_write_object_end(&json);
    buffer_add_char(out, '\n');
}

/* ---- reading: our own file, but disks and people have had it since ---- */

/* Infinity is null in JSON. */
static int read_double(struct json *json, double *value)
{
    if (json_null(json)) {
        *value = INFINITY;
        return 0;
    }
    return json_double(json, value);
}

static int read_mark(struct json *json, struct watch_book *book, struct watch_tenant *tenant)
{
    char service[WATCH_NAME_BYTES] = "", version[WATCH_NAME_BYTES] = "", by[WATCH_NAME_BYTES] = "";
    char text[WATCH_MARK_TEXT_BYTES] = "";
    struct watch_mark mark = {.service = service, .version = version, .text = text, .by = by};
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "time"))
            r = json_i64(json, &mark.time_ns);
        else if (json_is(&key, "service"))
            r = document_text(json, service, sizeof(service));
        else if (json_is(&key, "version"))
            r = document_text(json, version, sizeof(version));
        else if (json_is(&key, "text"))
            r = document_text(json, text, sizeof(text));
        else if (json_is(&key, "by"))
            r = document_text(json, by, sizeof(by));
        else if (json_is(&key, "looks"))
            r = json_u64(json, &mark.looks);
    if (r >= 0)
        watch_mark_add(book, tenant, &mark);
    return r;
}

static int read_close(struct json *json, enum watch_close *closed)
{
    char word[32];
    int r = document_text(json, word, sizeof(word));
    for (unsigned i = 0; r >= 0 && i < WATCH_CLOSES; i++)
        if (!strcmp(watch_close_names[i], word)) {
            *closed = (enum watch_close)i;
            return 0;
        }
    return r < 0 ? r : json_fail(json, "\"%s\" is not a reason to close a finding", word);
}

static int read_kind(struct json *json, enum watch_kind *kind)
{
    char word[32];
    int r = document_text(json, word, sizeof(word));
    for (unsigned i = 0; r >= 0 && i < WATCH_KINDS; i++)
        if (!strcmp(watch_kind_names[i], word)) {
            *kind = (enum watch_kind)i;
            return 0;
        }
    return r < 0 ? r : json_fail(json, "\"%s\" is not a kind of finding", word);
}

static int read_numbers(struct json *json, const struct json_string *key,
                        struct watch_finding *finding)
{
    const struct {
        const char *key;
        int64_t *to;
    } times[] = {{"opened", &finding->opened_ns},
                 {"seen", &finding->seen_ns},
                 {"closed_at", &finding->closed_ns},
                 {"base_from", &finding->base_from_ns},
                 {"base_to", &finding->base_to_ns},
                 {"from", &finding->from_ns},
                 {"to", &finding->to_ns}};
    const struct {
        const char *key;
        double *to;
    } numbers[] = {{"growth", &finding->growth},
                   {"growth_low", &finding->growth_low},
                   {"growth_high", &finding->growth_high},
                   {"base_share", &finding->base_share},
                   {"share", &finding->share},
                   {"slope", &finding->slope},
                   {"slope_low", &finding->slope_low},
                   {"slope_high", &finding->slope_high},
                   {"site_bytes", &finding->site_bytes},
                   {"process_bytes", &finding->process_bytes},
                   {"limit_bytes", &finding->limit_bytes}};
    for (size_t i = 0; i < ARRAY_LENGTH(times); i++)
        if (json_is(key, times[i].key))
            return json_i64(json, times[i].to);
    for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++)
        if (json_is(key, numbers[i].key))
            return read_double(json, numbers[i].to);
    return 0;
}

static int read_finding(struct json *json, struct watch_book *book, struct watch_tenant *tenant)
{
    char service[WATCH_NAME_BYTES] = "", version[WATCH_NAME_BYTES] = "";
    char base_version[WATCH_NAME_BYTES] = "", type[WATCH_FUNCTION_BYTES] = "";
    char function[WATCH_FUNCTION_BYTES] = "";
    struct watch_finding finding = {.service = service,
                                    .version = version,
                                    .base_version = base_version,
                                    .type = type,
                                    .function = function};
    const struct {
        const char *key;
        char *to;
        size_t room;
    } texts[] = {{"service", service, sizeof(service)},
                 {"version", version, sizeof(version)},
                 {"base_version", base_version, sizeof(base_version)},
                 {"type", type, sizeof(type)},
                 {"function", function, sizeof(function)},
                 {"id", finding.id, sizeof(finding.id)},
                 {"unit", finding.unit, sizeof(finding.unit)}};
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        size_t at = 0;
        while (at < ARRAY_LENGTH(texts) && !json_is(&key, texts[at].key))
            at++;
        if (at < ARRAY_LENGTH(texts))
            r = document_text(json, texts[at].to, texts[at].room);
        else if (json_is(&key, "misses"))
            r = json_u64(json, &finding.misses);
        else if (json_is(&key, "closed"))
            r = read_close(json, &finding.closed);
        else if (json_is(&key, "kind"))
            r = read_kind(json, &finding.kind);
        else
            r = read_numbers(json, &key, &finding);
    }
    if (r >= 0)
        watch_finding_add(book, tenant, &finding);
    return r;
}

static int read_tenant(struct json *json, void *context)
{
    struct watch_book *book = context;
    struct watch_tenant *tenant = NULL;
    char name[WATCH_NAME_BYTES];
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        bool marks = json_is(&key, "marks");
        if (json_is(&key, "name")) {
            r = document_text(json, name, sizeof(name));
            tenant = r < 0 ? NULL : watch_book_tenant(book, name);
        } else if (marks || json_is(&key, "findings")) {
            r = tenant ? json_array(json) : json_fail(json, "A tenant must begin with its name");
            while (r >= 0 && (r = json_next_element(json)) > 0)
                r = marks ? read_mark(json, book, tenant) : read_finding(json, book, tenant);
        }
    }
    return r;
}

int watch_book_read(struct watch_book *book, const char *text, size_t length, struct error *error)
{
    static const struct document_member members[] = {{"tenants", true, read_tenant}, {0}};
    return document_read(text, length, FILE_BYTES_MAX, FILE_VERSION, members, book, error);
}
