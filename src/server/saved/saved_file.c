// SPDX-License-Identifier: Apache-2.0
// Views, notes and pins on disk: JSON, written whole. docs/formats/saved.md describes it.

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "io/document.h"
#include "io/json_write.h"
#include "server/saved/saved.h"

#define FILE_VERSION 1

/* ---- writing ---- */

static void write_item(const struct saved_item *item, struct json_writer *json)
{
    json_write_line(json);
    json_write_object(json);
    json_member_text(json, "id", item->id);
    json_member_text(json, "kind", saved_kind_names[item->kind]);
    json_member_text(json, "text", item->text);
    json_member_text(json, "address", item->address);
    json_member_text(json, "service", item->service);
    json_member_text(json, "by", item->by);
    json_member_signed(json, "saved", item->saved_ns);
    json_member_signed(json, "from", item->from_ns);
    json_member_signed(json, "to", item->to_ns);
    json_member_signed(json, "expires", item->expires_ns);
    json_member_signed(json, "dropped", item->dropped_ns);
    json_member_text(json, "why", item->why);
    json_write_object_end(json);
}

void saved_write(const struct saved *saved, struct buffer *out)
{
    struct json_writer json = json_writer(out);
    json_write_object(&json);
    json_member_signed(&json, "version", FILE_VERSION);
    json_write_key(&json, "tenants");
    json_write_array(&json);
    for (size_t i = 0; i < saved->tenant_count; i++) {
        const struct saved_tenant *tenant = &saved->tenants[i];
        json_write_line(&json);
        json_write_object(&json);
        json_member_text(&json, "name", tenant->name);
        json_write_key(&json, "items");
        json_write_array(&json);
        for (size_t k = 0; k < tenant->count; k++)
            write_item(&tenant->items[k], &json);
        json_write_array_end(&json);
        json_write_object_end(&json);
    }
    json_write_array_end(&json);
    json_write_object_end(&json);
    buffer_add_char(out, '\n');
}

/* ---- reading ---- */

/* The texts of an item while it is read. */
struct reading {
    struct saved_item item;
    char kind[16], text[SAVED_TEXT_BYTES], address[SAVED_ADDRESS_BYTES], service[SAVED_NAME_BYTES];
    char by[SAVED_NAME_BYTES], why[SAVED_TEXT_BYTES];
};

static int read_member(struct json *json, const struct json_string *key, struct reading *reading)
{
    struct saved_item *item = &reading->item;
    const struct {
        const char *name;
        char *to;
        size_t room;
    } texts[] = {
        {"id", item->id, sizeof(item->id)},
        {"kind", reading->kind, sizeof(reading->kind)},
        {"text", reading->text, sizeof(reading->text)},
        {"address", reading->address, sizeof(reading->address)},
        {"service", reading->service, sizeof(reading->service)},
        {"by", reading->by, sizeof(reading->by)},
        {"why", reading->why, sizeof(reading->why)},
    };
    const struct {
        const char *name;
        int64_t *to;
    } times[] = {
        {"saved", &item->saved_ns},     {"from", &item->from_ns},       {"to", &item->to_ns},
        {"expires", &item->expires_ns}, {"dropped", &item->dropped_ns},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        if (json_is(key, texts[i].name))
            return document_text(json, texts[i].to, texts[i].room);
    for (size_t i = 0; i < ARRAY_LENGTH(times); i++)
        if (json_is(key, times[i].name))
            return json_i64(json, times[i].to);
    return 0; /* an unknown member is skipped */
}

static int read_item(struct json *json, struct saved *saved, struct saved_tenant *tenant)
{
    _cleanup_free_ struct reading *reading = memory_zalloc(1, sizeof(*reading));
    struct saved_item *item = &reading->item, *added;
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        r = read_member(json, &key, reading);
    if (r < 0)
        return r;
    for (item->kind = 0; item->kind < SAVED_KINDS; item->kind++)
        if (!strcmp(saved_kind_names[item->kind], reading->kind))
            break;
    if (item->kind == SAVED_KINDS || !*item->id)
        return json_fail(json, "An item has no id, or an unknown kind");
    item->text = reading->text;
    item->address = reading->address;
    item->service = reading->service;
    item->by = reading->by;
    item->why = reading->why;
    r = saved_add(saved, tenant, item, &added, json->error);
    return r == -EDQUOT ? 0 : r; /* a lower limit than before */
}

static int read_tenant(struct json *json, void *context)
{
    struct saved *saved = context;
    struct saved_tenant *tenant = NULL;
    char name[SAVED_NAME_BYTES];
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "name")) {
            r = document_text(json, name, sizeof(name));
            tenant = r < 0 ? NULL : saved_tenant(saved, name);
        } else if (json_is(&key, "items")) {
            r = tenant ? json_array(json) : json_fail(json, "A tenant must begin with its name");
            while (r >= 0 && (r = json_next_element(json)) > 0)
                r = read_item(json, saved, tenant);
        }
    return r;
}

int saved_read(struct saved *saved, const char *text, size_t length, struct error *error)
{
    static const struct document_member members[] = {{"tenants", true, read_tenant}, {0}};
    return document_read(text, length, SAVED_FILE_BYTES_MAX, FILE_VERSION, members, saved, error);
}
