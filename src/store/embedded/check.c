// SPDX-License-Identifier: Apache-2.0
// Reading everything to see whether it can be read.

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "store/embedded/embedded.h"

struct check {
    struct embedded *store;
    store_text_fn *fn;
    void *context;
    uint64_t wrong;
};

static int say(struct check *check, const char *text)
{
    check->wrong++;
    return check->fn(check->context, text);
}

static int check_database(struct check *check, struct file *file, struct connection *connection,
                          struct error *error)
{
    char text[ERROR_TEXT_BYTES];
    sqlite3_stmt *statement = file_sql(file, connection, SQL_CHECK, error);
    if (!statement)
        return error->code;
    int r;
    while ((r = file_step(file, statement, error)) == 1) {
        const char *line = (const char *)sqlite3_column_text(statement, 0);
        if (!line || !sqlite3_stricmp(line, "ok"))
            continue;
        snprintf(text, sizeof(text), "%s: %s.", file->path, line);
        r = say(check, text);
        if (r) {
            sqlite3_reset(statement);
            return r;
        }
    }
    return r;
}

/* NULL, or what is wrong with a block. */
static const char *check_block(struct file *file, struct block_codec *codec, int64_t series,
                               const void *data, size_t length, struct block_rows *rows,
                               struct error *error)
{
    struct block_view view;
    block_rows_clear(rows);
    if (!data || block_open(codec, data, length, &view) < 0 ||
        block_decode(&view, 0, view.window_count, rows) < 0)
        return "is unreadable";
    pthread_rwlock_rdlock(&file->lock);
    bool known = series >= 0 && (size_t)series < file->catalog.series_count;
    uint32_t service = known ? file->catalog.series[series].service : 0;
    pthread_rwlock_unlock(&file->lock);
    if (!known)
        return "belongs to no known series";
    if (file_load_tree(file, service, error) < 0)
        return "belongs to a service with unreadable stacks";
    pthread_rwlock_rdlock(&file->lock);
    uint32_t nodes = file->catalog.services[service].tree.count;
    pthread_rwlock_unlock(&file->lock);
    if (view.dictionary_count && view.dictionary[view.dictionary_count - 1] >= nodes)
        return "refers to missing stacks";
    return NULL;
}

static int check_blocks(struct check *check, struct file *file, struct connection *connection,
                        struct error *error)
{
    char text[ERROR_TEXT_BYTES];
    int r = file_load(file, error);
    sqlite3_stmt *statement =
        r < 0 ? NULL : file_sql(file, connection, SQL_BLOCKS_OF_SERIES, error);
    if (!statement)
        return error->code;
    struct block_codec *codec = embedded_codec(check->store);
    struct block_rows rows = {0};
    while ((r = file_step(file, statement, error)) == 1) {
        const char *wrong = check_block(file, codec, sqlite3_column_int64(statement, 1),
                                        sqlite3_column_blob(statement, 2),
                                        (size_t)sqlite3_column_bytes(statement, 2), &rows, error);
        if (!wrong)
            continue;
        snprintf(text, sizeof(text), "%s: block %lld %s.", file->path,
                 (long long)sqlite3_column_int64(statement, 0), wrong);
        if ((r = say(check, text))) {
            sqlite3_reset(statement);
            break;
        }
    }
    block_rows_release(&rows);
    embedded_codec_return(check->store, codec);
    return r;
}

static int say_damage(void *context, const char *text)
{
    return say(context, text);
}

int embedded_check(struct store *base, store_text_fn *fn, void *context, struct error *error)
{
    struct check check = {.store = embedded_of(base), .fn = fn, .context = context};
    struct file_list list = embedded_files(check.store, NULL, INT64_MIN, INT64_MAX);
    int r = embedded_check_damages(check.store, say_damage, &check);
    for (size_t i = 0; !r && i < list.count; i++) {
        struct connection *connection = file_borrow(list.files[i], error);
        r = connection ? check_database(&check, list.files[i], connection, error) : error->code;
        if (!r)
            r = check_blocks(&check, list.files[i], connection, error);
        file_return(list.files[i], connection);
        if (r == -EBADMSG)
            r = say(&check, error->text);
    }
    embedded_release(check.store, &list);
    if (!r && check.wrong)
        r = error_set(error, -EBADMSG, "%llu problems found in %s.",
                      (unsigned long long)check.wrong, check.store->directory);
    return r;
}
