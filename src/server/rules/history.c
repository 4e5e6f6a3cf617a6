// SPDX-License-Identifier: Apache-2.0
// Series of SLIs in memory and on disk: see history.h.

#include "server/rules/history.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "io/base64.h"
#include "io/document.h"
#include "io/json_write.h"

#define FILE_VERSION 1
#define FILE_BYTES_MAX (64u << 20)
#define NAME_BYTES 257
#define POINT_BYTES 8

static void series_free(struct history_series *series)
{
    labels_release(&series->labels);
    free(series->tenant);
    free(series->sli);
    free(series->points);
    free(series);
}

void history_release(struct history *history)
{
    for (size_t i = 0; i < history->count; i++)
        series_free(history->list[i]);
    free(history->list);
    *history = (struct history){0};
}

static int64_t end_of(const struct history_series *series)
{
    return series->count ? series->points[series->count - 1].time_s : 0;
}

/* The one that ended the longest ago, if that was an hour. */
static bool make_room(struct history *history, int64_t now_s)
{
    size_t oldest = 0;
    for (size_t i = 1; i < history->count; i++)
        if (end_of(history->list[i]) < end_of(history->list[oldest]))
            oldest = i;
    if (!history->count || end_of(history->list[oldest]) > now_s - 3600)
        return false;
    series_free(history->list[oldest]);
    history->list[oldest] = history->list[--history->count];
    return true;
}

struct history_series *history_find(struct history *history, const char *tenant, const char *sli,
                                    const struct labels *labels, bool add, int64_t now_s)
{
    for (size_t i = 0; i < history->count; i++) {
        struct history_series *series = history->list[i];
        if (!strcmp(series->sli, sli) && !strcmp(series->tenant, tenant) &&
            labels_equal(&series->labels, labels))
            return series;
    }
    if (!add)
        return NULL;
    if (history->count >= HISTORY_SERIES_MAX && !make_room(history, now_s)) {
        history->dropped++;
        return NULL;
    }
    array_reserve(history->list, history->capacity, history->count + 1);
    struct history_series *series = memory_zalloc(1, sizeof(*series));
    series->tenant = memory_strdup(tenant);
    series->sli = memory_strdup(sli);
    labels_copy(&series->labels, labels);
    history->list[history->count++] = series;
    return series;
}

void history_add(struct history *history, struct history_series *series, int64_t time_s,
                 double value)
{
    if (time_s <= end_of(series) || time_s > UINT32_MAX)
        return;
    if (series->count >= HISTORY_POINTS_MAX) {
        size_t kept = HISTORY_POINTS_MAX / 8 * 7;
        memmove(series->points, series->points + series->count - kept,
                kept * sizeof(*series->points));
        series->count = kept;
    }
    array_reserve(series->points, series->capacity, series->count + 1);
    series->points[series->count++] = (struct history_point){(uint32_t)time_s, (float)value};
    history->unsaved = true;
}

bool history_at(const struct history_series *series, int64_t time_s, double *ret_value)
{
    size_t low = 0, high = series->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (series->points[middle].time_s < time_s)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == series->count || series->points[low].time_s != time_s)
        return false;
    *ret_value = (double)series->points[low].value;
    return true;
}

void history_trim(struct history *history, int64_t before_s)
{
    for (size_t i = 0; i < history->count;) {
        if (end_of(history->list[i]) < before_s) {
            series_free(history->list[i]);
            history->list[i] = history->list[--history->count];
            history->unsaved = true;
        } else {
            i++;
        }
    }
}

/* ---- the file ---- */

static void write_points(const struct history_series *series, struct json_writer *json)
{
    _cleanup_buffer_ struct buffer bytes = {0}, text = {0};
    for (size_t i = 0; i < series->count; i++) {
        uint32_t words[2] = {series->points[i].time_s, 0};
        memcpy(&words[1], &series->points[i].value, 4);
        for (int k = 0; k < 8; k++)
            buffer_add_char(&bytes, (char)(words[k / 4] >> (k % 4 * 8)));
    }
    base64_encode(bytes.data, bytes.length, &text);
    json_member_text(json, "points", buffer_text(&text));
}

void history_write(const struct history *history, struct buffer *out)
{
    struct json_writer json = json_writer(out);
    json_write_object(&json);
    json_member_signed(&json, "version", FILE_VERSION);
    json_write_key(&json, "series");
    json_write_array(&json);
    for (size_t i = 0; i < history->count; i++) {
        const struct history_series *series = history->list[i];
        json_write_line(&json);
        json_write_object(&json);
        json_member_text(&json, "tenant", series->tenant);
        json_member_text(&json, "sli", series->sli);
        json_write_key(&json, "labels");
        json_write_object(&json);
        for (size_t k = 0; k < series->labels.count; k++)
            json_member_text(&json, series->labels.list[k].name, series->labels.list[k].value);
        json_write_object_end(&json);
        write_points(series, &json);
        json_write_object_end(&json);
    }
    json_write_array_end(&json);
    json_write_object_end(&json);
    buffer_add_char(out, '\n');
}

static int read_labels(struct json *json, struct labels *labels)
{
    struct json_string key, value;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        _cleanup_buffer_ struct buffer name = {0};
        if (labels->count >= 64 || !utf8_valid(key.data, key.length))
            return json_fail(json, "A series has too many labels, or one that is not text");
        buffer_add(&name, key.data, key.length);
        r = json_string(json, &value);
        if (r >= 0 && !utf8_valid(value.data, value.length))
            return json_fail(json, "A label is not text");
        if (r >= 0)
            labels_set_n(labels, name.data, name.length, value.data, value.length);
    }
    return r;
}

static int read_points(struct json *json, struct buffer *points)
{
    struct json_string text;
    int r = json_string(json, &text);
    if (r >= 0 && (!base64_decode(text.data, text.length, points) || points->length % POINT_BYTES ||
                   points->length / POINT_BYTES > HISTORY_POINTS_MAX))
        r = json_fail(json, "The points of a series make no sense");
    return r;
}

static void add_points(struct history *history, struct history_series *series,
                       const struct buffer *points)
{
    for (size_t at = 0; at < points->length; at += POINT_BYTES) {
        uint32_t words[2] = {0};
        float value;
        for (int k = 0; k < 8; k++)
            words[k / 4] |= (uint32_t)(unsigned char)points->data[at + (size_t)k] << (k % 4 * 8);
        memcpy(&value, &words[1], 4);
        history_add(history, series, words[0], (double)value);
    }
}

static int read_name(struct json *json, char name[NAME_BYTES])
{
    struct json_string text;
    int r = json_string(json, &text);
    if (r < 0)
        return r;
    if (text.length >= NAME_BYTES || memchr(text.data, 0, text.length) ||
        !utf8_valid(text.data, text.length))
        return json_fail(json, "A name is too long, or not text");
    memcpy(name, text.data, text.length);
    name[text.length] = 0;
    return 0;
}

static int read_series(struct json *json, void *context)
{
    struct history *history = context;
    _cleanup_labels_ struct labels labels = {0};
    _cleanup_buffer_ struct buffer points = {0};
    char tenant[NAME_BYTES] = "", sli[NAME_BYTES] = "";
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "tenant"))
            r = read_name(json, tenant);
        else if (json_is(&key, "sli"))
            r = read_name(json, sli);
        else if (json_is(&key, "labels"))
            r = read_labels(json, &labels);
        else if (json_is(&key, "points"))
            r = read_points(json, &points);
    struct history_series *series =
        r < 0 ? NULL : history_find(history, tenant, sli, &labels, true, 0);
    if (series)
        add_points(history, series, &points);
    return r;
}

int history_read(struct history *history, const char *text, size_t length, struct error *error)
{
    static const struct document_member members[] = {{"series", true, read_series}, {0}};
    return document_read(text, length, FILE_BYTES_MAX, FILE_VERSION, members, history, error);
}
