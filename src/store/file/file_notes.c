// SPDX-License-Identifier: Apache-2.0
// The notes of a store file: what is made (`slots`), what has to be made again (`late`), and
// `meta`. They decide what maintenance and queries do with everything else, and their rows are too
// small for checksums of their own, so one row of `meta` seals all of them: the sum of all rows'
// hashes.

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "store/file/file.h"

#define SEAL "seal"

struct notes {
    uint64_t sum, seal;
    bool sealed;
};

static uint64_t hash_row(sqlite3_stmt *statement)
{
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_64bits_reset(&state);
    for (int column = 0; column < 3; column++) {
        const char *text = (const char *)sqlite3_column_text(statement, column);
        XXH3_64bits_update(&state, text ? text : "", text ? strlen(text) + 1 : 0);
    }
    return XXH3_64bits_digest(&state);
}

static int read_notes(struct file *file, struct connection *connection, struct notes *notes,
                      struct error *error)
{
    *notes = (struct notes){0};
    sqlite3_stmt *statement = file_sql(file, connection, SQL_NOTES, error);
    int r = statement ? 0 : error->code;
    while (statement && (r = file_step(file, statement, error)) == 1) {
        const char *table = (const char *)sqlite3_column_text(statement, 0);
        const char *key = (const char *)sqlite3_column_text(statement, 1);
        if (table && key && !strcmp(table, "meta") && !strcmp(key, SEAL)) {
            notes->seal = (uint64_t)sqlite3_column_int64(statement, 2);
            notes->sealed = true;
        } else {
            notes->sum += hash_row(statement);
        }
    }
    return r;
}

int file_check_notes(struct file *file, struct connection *connection, struct error *error)
{
    struct notes notes;
    int r = read_notes(file, connection, &notes, error);
    if (!r && (!notes.sealed || notes.seal != notes.sum))
        return error_set(error, -EBADMSG, "%s: its notes of what is rolled up are damaged.",
                         file->path);
    return r;
}

/* Before the first change of a transaction: damage must not be sealed. */
static int begin_change(struct file *file, struct error *error)
{
    int r = file->notes_changed ? 0 : file_check_notes(file, file->writer, error);
    if (!r)
        file->notes_changed = true;
    return r;
}

static int set_meta(struct file *file, const char *key, int64_t value, struct error *error)
{
    sqlite3_stmt *statement = file_sql(file, file->writer, SQL_SET_META, error);
    if (!statement)
        return error->code;
    sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, value);
    return file_step(file, statement, error);
}

int file_seal_notes(struct file *file, struct error *error)
{
    struct notes notes;
    int r = file->notes_changed ? read_notes(file, file->writer, &notes, error) : 0;
    if (!r && file->notes_changed)
        r = set_meta(file, SEAL, (int64_t)notes.sum, error);
    return r;
}

int file_get_meta(struct file *file, struct connection *connection, const char *key,
                  int64_t *ret_value, struct error *error)
{
    struct error local = {0};
    sqlite3_stmt *statement = file_sql(file, connection, SQL_GET_META, &local);
    if (statement)
        sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
    int r = statement ? file_step(file, statement, &local) : local.code;
    if (r == 1) {
        *ret_value = sqlite3_column_int64(statement, 0);
        sqlite3_reset(statement);
    }
    if (r < 0 && error)
        *error = local;
    return r;
}

int file_set_meta(struct file *file, const char *key, int64_t value, struct error *error)
{
    int r = begin_change(file, error);
    return r < 0 ? r : set_meta(file, key, value, error);
}

int file_remove_meta(struct file *file, const char *key, struct error *error)
{
    int r = begin_change(file, error);
    sqlite3_stmt *statement = r < 0 ? NULL : file_sql(file, file->writer, SQL_REMOVE_META, error);
    if (!statement)
        return error->code;
    sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
    return file_step(file, statement, error);
}

/* A statement whose parameters are one or two numbers. */
static int change(struct file *file, enum sql which, int64_t first, const int64_t *second,
                  struct error *error)
{
    int r = begin_change(file, error);
    sqlite3_stmt *statement = r < 0 ? NULL : file_sql(file, file->writer, which, error);
    if (!statement)
        return error->code;
    sqlite3_bind_int64(statement, 1, first);
    if (second)
        sqlite3_bind_int64(statement, 2, *second);
    return file_step(file, statement, error);
}

int file_note_late(struct file *file, int64_t time_ns, struct error *error)
{
    if (file->tier == STORE_DAY || time_ns >= file->rolled_until_ns)
        return 0;
    int64_t slot = tier_slot_ns[file->tier + 1];
    return change(file, SQL_ADD_LATE, time_ns / slot * slot, NULL, error);
}

int file_remove_late(struct file *file, int64_t slot_ns, int64_t count, struct error *error)
{
    return change(file, SQL_REMOVE_LATE, slot_ns, &count, error);
}

int file_add_slot(struct file *file, int64_t slot_ns, struct error *error)
{
    return change(file, SQL_ADD_SLOT, slot_ns, NULL, error);
}

int file_remove_slots(struct file *file, int64_t from_ns, int64_t to_ns, struct error *error)
{
    return change(file, SQL_REMOVE_SLOTS, from_ns, &to_ns, error);
}
