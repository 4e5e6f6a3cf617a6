// SPDX-License-Identifier: Apache-2.0
// Files of the embedded store: names and periods, making and opening, loading the catalog.

#include "store/file/file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"

#define SECOND 1000000000ll
#define DAY (86400 * SECOND)
#define POOL_MAX 4
#define BUSY_MS 10000
#define LOG_BUSY_MS 1000      /* everybody waits meanwhile */
#define FULL_BYTES (1u << 20) /* a disk with less than this is full */

const int64_t tier_slot_ns[STORE_TIERS] = {0, 600 * SECOND, 3600 * SECOND, DAY};
/* Rollups are read at the edges of a range, where a few of a block's windows are wanted, and the
 * others have to be passed over. */
const int64_t tier_span_ns[STORE_TIERS] = {3600 * SECOND, 2 * 3600 * SECOND, 6 * 3600 * SECOND,
                                           DAY};
const int64_t tier_block_ns[STORE_TIERS] = {3600 * SECOND, DAY, DAY, DAY};
const char *const tier_names[STORE_TIERS] = {"raw", "ten", "hour", "day"};

/* A day, a week from Monday, a month, a year; in UTC. */
void tier_period(enum store_tier tier, int64_t time_ns, int64_t *ret_from_ns, int64_t *ret_to_ns)
{
    int64_t day = time_ns / DAY - (time_ns % DAY < 0);
    if (tier == STORE_RAW || tier == STORE_TEN_MINUTES) {
        int64_t days = tier == STORE_RAW ? 1 : 7;
        int64_t first = tier == STORE_RAW ? day : day - (day + 3) % 7; /* 1970-01-01: Thursday */
        *ret_from_ns = first * DAY;
        *ret_to_ns = (first + days) * DAY;
        return;
    }
    time_t seconds = (time_t)(day * 86400);
    struct tm from, to;
    gmtime_r(&seconds, &from);
    from.tm_mday = 1;
    if (tier == STORE_DAY)
        from.tm_mon = 0;
    to = from;
    if (tier == STORE_DAY)
        to.tm_year++;
    else
        to.tm_mon++;
    *ret_from_ns = (int64_t)timegm(&from) * SECOND;
    *ret_to_ns = (int64_t)timegm(&to) * SECOND;
}

void file_name(char *out, size_t size, enum store_tier tier, const char *class_name,
               int64_t from_ns)
{
    time_t seconds = (time_t)(from_ns / SECOND);
    struct tm date;
    gmtime_r(&seconds, &date);
    snprintf(out, size, "%s-%s-%04d-%02d-%02d" FILE_SUFFIX, tier_names[tier], class_name,
             date.tm_year + 1900, date.tm_mon + 1, date.tm_mday);
}

bool file_parse_name(const char *name, enum store_tier *ret_tier, char **ret_class,
                     int64_t *ret_from_ns)
{
    size_t length = strlen(name), suffix = strlen("-2026-11-15" FILE_SUFFIX);
    for (unsigned tier = 0; tier < STORE_TIERS; tier++) {
        size_t prefix = strlen(tier_names[tier]);
        if (strncmp(name, tier_names[tier], prefix) || name[prefix] != '-' ||
            length < prefix + 2 + suffix || length > NAME_MAX)
            continue;
        const char *date = name + length - suffix;
        struct tm tm = {0};
        const char *end = strptime(date, "-%Y-%m-%d", &tm);
        int64_t from = (int64_t)timegm(&tm) * SECOND, first, last;
        if (!end || strcmp(end, FILE_SUFFIX))
            return false;
        tier_period(tier, from, &first, &last);
        if (first != from)
            return false;
        *ret_tier = tier;
        *ret_class = memory_strndup(name + prefix + 1, (size_t)(date - name) - prefix - 1);
        *ret_from_ns = from;
        return true;
    }
    return false;
}

struct file *file_new(const char *folder, const char *tenant, const char *class_name,
                      enum store_tier tier, int64_t time_ns, bool read_only)
{
    struct file *file = memory_zalloc(1, sizeof(*file));
    char name[NAME_MAX + 1];
    tier_period(tier, time_ns, &file->from_ns, &file->to_ns);
    file_name(name, sizeof(name), tier, class_name, file->from_ns);
    size_t size = strlen(folder) + strlen(name) + 2;
    file->path = memory_alloc(size);
    snprintf(file->path, size, "%s/%s", folder, name);
    file->name = file->path + strlen(folder) + 1;
    file->tenant = memory_strdup(tenant);
    file->class_name = memory_strdup(class_name);
    file->tier = tier;
    file->read_only = read_only;
    pthread_mutex_init(&file->write_lock, NULL);
    pthread_mutex_init(&file->pool_lock, NULL);
    pthread_mutex_init(&file->spans_lock, NULL);
    pthread_mutex_init(&file->live_lock, NULL);
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    /* Pushes must not starve while dashboards read. */
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&file->lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    return file;
}

static void connection_close(struct connection *connection)
{
    if (!connection)
        return;
    for (unsigned i = 0; i < SQL_STATEMENTS; i++)
        sqlite3_finalize(connection->statements[i]);
    sqlite3_close(connection->db);
    free(connection);
}

void file_unload(struct file *file)
{
    while (file->idle) {
        struct connection *next = file->idle->next;
        connection_close(file->idle);
        file->idle = next;
    }
    connection_close(file->writer); /* last: it empties the log */
    file->writer = NULL;
    if (file->live)
        file->free_live(file->live);
    file->live = NULL;
    if (file->loaded)
        catalog_release(&file->catalog);
    file->loaded = file->named = false;
    file->knows_rolled = false;
}

void file_free(struct file *file)
{
    if (!file)
        return;
    file_unload(file);
    pthread_mutex_destroy(&file->write_lock);
    pthread_mutex_destroy(&file->pool_lock);
    pthread_mutex_destroy(&file->spans_lock);
    pthread_mutex_destroy(&file->live_lock);
    pthread_rwlock_destroy(&file->lock);
    free(file->path);
    free(file->tenant);
    free(file->class_name);
    free(file->settled);
    free(file->lost);
    free(file->added);
    free(file);
}

uint64_t file_bytes(const struct file *file)
{
    uint64_t bytes = 0;
    char path[PATH_MAX];
    const char *const suffixes[] = {"", "-wal"};
    for (unsigned i = 0; i < ARRAY_LENGTH(suffixes); i++) {
        struct stat status;
        snprintf(path, sizeof(path), "%s%s", file->path, suffixes[i]);
        if (!stat(path, &status))
            bytes += (uint64_t)status.st_blocks * 512;
    }
    return bytes;
}

/* ---- making and opening ---- */

static const char schema[] =
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE services (id INTEGER PRIMARY KEY, name TEXT NOT NULL);"
    "CREATE TABLE series (id INTEGER PRIMARY KEY, service INTEGER NOT NULL, type TEXT NOT NULL,"
    " labels BLOB NOT NULL);"
    "CREATE TABLE chunks (kind INTEGER NOT NULL, service INTEGER NOT NULL, first INTEGER NOT NULL,"
    " count INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (kind, service, first));"
    "CREATE TABLE blocks (id INTEGER PRIMARY KEY, series INTEGER NOT NULL, start INTEGER NOT NULL,"
    " last INTEGER NOT NULL, level INTEGER NOT NULL, windows INTEGER NOT NULL,"
    " rows INTEGER NOT NULL, total INTEGER NOT NULL, unsure BLOB, data BLOB NOT NULL);"
    "CREATE INDEX blocks_series ON blocks (series, start, last, level, total);"
    "CREATE TABLE exemplars (series INTEGER NOT NULL, start INTEGER NOT NULL,"
    " time INTEGER NOT NULL, node INTEGER NOT NULL, value INTEGER NOT NULL, link BLOB NOT NULL,"
    " unsure BLOB);"
    "CREATE INDEX exemplars_series ON exemplars (series, start);"
    "CREATE TABLE batches (id BLOB PRIMARY KEY) WITHOUT ROWID;"
    "CREATE TABLE late (slot INTEGER PRIMARY KEY, count INTEGER NOT NULL);"
    "CREATE TABLE slots (start INTEGER PRIMARY KEY);"
    "CREATE TABLE unsure (id BLOB PRIMARY KEY, decider TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE decided (id BLOB PRIMARY KEY) WITHOUT ROWID;"
    "INSERT INTO meta (key, value) VALUES ('seal', 0);";

/* SQLite doesn't always keep the system's reason for a write that failed: no room on the disk, or a
 * limit on the size of files, are the ones that pass. */
static bool is_full(const char *path)
{
    char folder[PATH_MAX];
    struct statvfs space;
    struct rlimit limit;
    snprintf(folder, sizeof(folder), "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    return (!statvfs(folder, &space) && space.f_bavail * space.f_frsize < FULL_BYTES) ||
           (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY);
}

static int set_sql_error(const char *path, sqlite3 *db, int code, struct error *error)
{
    int system = db ? sqlite3_system_errno(db) : 0, result = -EIO;
    switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
        result = -EBADMSG;
        break;
    case SQLITE_FULL:
        result = -ENOSPC;
        break;
    case SQLITE_READONLY:
        result = -EROFS;
        break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        result = -EBUSY;
        break;
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
        result = code == SQLITE_IOERR_SHORT_READ ? -EBADMSG : system ? -system : -EIO;
        if (result == -EDQUOT || result == -EFBIG || (result == -EIO && is_full(path)))
            result = -ENOSPC;
    }
    return error_set(error, result, "%s: %s%s%s.", path, db ? sqlite3_errmsg(db) : "failed to open",
                     system ? ": " : "", system ? strerror(system) : "");
}

/* On a disk that can't be written SQLite can't share its log, and wouldn't open the file. It can
 * when told that nothing will change, which is so when there is no log. */
static bool is_frozen(const char *path)
{
    char other[PATH_MAX];
    struct stat status;
    snprintf(other, sizeof(other), "%s-wal", path);
    if (!stat(other, &status) && status.st_size)
        return false;
    snprintf(other, sizeof(other), "%s", path);
    char *slash = strrchr(other, '/');
    if (slash)
        *slash = '\0';
    return access(other, W_OK) < 0;
}

/* As SQLite wants names of files that have parameters. */
static void add_frozen_name(struct buffer *out, const char *path)
{
    buffer_add_text(out, "file:");
    for (; *path; path++)
        if (strchr("%?#", *path))
            buffer_printf(out, "%%%02X", (unsigned char)*path);
        else
            buffer_add_char(out, *path);
    buffer_add_text(out, "?immutable=1");
}

static int open_database(const char *path, int flags, struct connection **ret_connection,
                         struct error *error)
{
    struct connection *connection = memory_zalloc(1, sizeof(*connection));
    _cleanup_buffer_ struct buffer name = {0};
    if (flags == SQLITE_OPEN_READONLY && is_frozen(path)) {
        add_frozen_name(&name, path);
        flags |= SQLITE_OPEN_URI;
    } else {
        buffer_add_text(&name, path);
    }
    int code =
        sqlite3_open_v2(buffer_text(&name), &connection->db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (code == SQLITE_OK) {
        sqlite3_extended_result_codes(connection->db, 1);
        sqlite3_busy_timeout(connection->db, BUSY_MS);
        code = sqlite3_exec(connection->db,
                            "PRAGMA synchronous=FULL; PRAGMA cell_size_check=ON;"
                            "PRAGMA trusted_schema=OFF; PRAGMA secure_delete=ON;"
                            "PRAGMA journal_size_limit=16777216; PRAGMA wal_autocheckpoint=2000;",
                            NULL, NULL, NULL);
    }
    if (code != SQLITE_OK) {
        int r = set_sql_error(path, connection->db, code, error);
        connection_close(connection);
        return r;
    }
    *ret_connection = connection;
    return 0;
}

static int sync_folder(const char *path, struct error *error)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 || fsync(fd) < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return r < 0 ? error_set_errno(error, r, "Failed to write %s to disk", folder) : 0;
}

/* With its log, which would become another file's of that name. */
static void remove_database(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char name[PATH_MAX];
    for (unsigned i = 0; i < ARRAY_LENGTH(ends); i++) {
        snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        unlink(name);
    }
}

/* Under another name first, so that nobody ever finds half a schema. All of it is in the file
 * itself before it gets its name, since the log doesn't go with it. A compacted block is some 7
 * KiB, and what is left of its last page is lost: pages of 2 KiB make a day's file an eighth
 * smaller than pages of 4 KiB. */
int file_create(struct file *file, struct error *error)
{
    char path[PATH_MAX];
    char pragmas[128];
    snprintf(path, sizeof(path), "%s.new", file->path);
    snprintf(pragmas, sizeof(pragmas), "PRAGMA application_id=%d; PRAGMA user_version=%d; COMMIT;",
             FILE_APPLICATION, FILE_FORMAT);
    remove_database(path);
    struct connection *connection;
    int r = open_database(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &connection, error);
    if (r < 0)
        return r;
    const char *const steps[] = {"PRAGMA page_size=2048; PRAGMA auto_vacuum=INCREMENTAL;"
                                 " PRAGMA journal_mode=WAL; BEGIN;",
                                 schema, pragmas};
    int code = SQLITE_OK;
    for (unsigned i = 0; code == SQLITE_OK && i < ARRAY_LENGTH(steps); i++)
        code = sqlite3_exec(connection->db, steps[i], NULL, NULL, NULL);
    /* Closing would do the same, and not say when it fails. */
    if (code == SQLITE_OK)
        code =
            sqlite3_wal_checkpoint_v2(connection->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    r = code == SQLITE_OK ? 0 : set_sql_error(path, connection->db, code, error);
    connection_close(connection);
    if (!r && rename(path, file->path) < 0)
        r = error_set_errno(error, -errno, "Failed to create %s", file->path);
    if (r < 0)
        remove_database(path);
    return r < 0 ? r : sync_folder(file->path, error);
}

static int pragma_number(struct connection *connection, const char *sql, int64_t *ret_value)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(connection->db, sql, -1, &statement, NULL);
    if (code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        *ret_value = sqlite3_column_int64(statement, 0);
        code = SQLITE_OK;
    }
    sqlite3_finalize(statement);
    return code;
}

static int check_identity(struct file *file, struct connection *connection, struct error *error)
{
    int64_t application = 0, version = 0;
    int code = pragma_number(connection, "PRAGMA application_id", &application);
    if (code == SQLITE_OK)
        code = pragma_number(connection, "PRAGMA user_version", &version);
    if (code != SQLITE_OK)
        return set_sql_error(file->path, connection->db, code, error);
    if (application != FILE_APPLICATION)
        return error_set(error, -EBADMSG, "%s is not a store file.", file->path);
    if (version != FILE_FORMAT)
        return error_set(error, -ENOTSUP,
                         "%s has format %lld; this program reads format %d. To move the data, use "
                         "`assay store export` of the version that wrote it, then `assay store "
                         "import` of this one.",
                         file->path, (long long)version, FILE_FORMAT);
    return 0;
}

int file_open(struct file *file, struct error *error)
{
    if (file->writer)
        return 0;
    struct connection *connection;
    int r =
        open_database(file->path, file->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE,
                      &connection, error);
    if (r < 0)
        return r;
    r = check_identity(file, connection, error);
    if (r < 0) {
        connection_close(connection);
        return r;
    }
    file->writer = connection;
    return 0;
}

struct connection *file_borrow(struct file *file, struct error *error)
{
    pthread_mutex_lock(&file->pool_lock);
    struct connection *connection = file->idle;
    if (connection)
        file->idle = connection->next;
    pthread_mutex_unlock(&file->pool_lock);
    /* A connection for reading may have to recover the log after a crash, so it isn't read-only. */
    if (!connection &&
        open_database(file->path, file->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE,
                      &connection, error) < 0)
        return NULL;
    return connection;
}

void file_return(struct file *file, struct connection *connection)
{
    if (!connection)
        return;
    pthread_mutex_lock(&file->pool_lock);
    unsigned idle = 0;
    for (struct connection *at = file->idle; at; at = at->next)
        idle++;
    if (idle < POOL_MAX) {
        connection->next = file->idle;
        file->idle = connection;
        connection = NULL;
    }
    pthread_mutex_unlock(&file->pool_lock);
    connection_close(connection);
}

/* ---- statements ---- */

static const char *const statements[SQL_STATEMENTS] = {
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_BEGIN_READ] = "BEGIN",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_ADD_CHUNK] = "INSERT INTO chunks (kind, service, first, count, data)"
                      " VALUES (?1, ?2, ?3, ?4, ?5)",
    [SQL_CHUNKS] = "SELECT first, data FROM chunks WHERE kind = ?1 AND service = ?2 ORDER BY first",
    [SQL_COUNT_CHUNKS] = "SELECT kind, service, count(*) FROM chunks GROUP BY kind, service"
                         " HAVING count(*) >= ?1",
    [SQL_REMOVE_CHUNKS] = "DELETE FROM chunks WHERE kind = ?1 AND service = ?2",
    [SQL_CLEAR_CHUNKS] = "DELETE FROM chunks",
    [SQL_ADD_SERVICE] = "INSERT INTO services (id, name) VALUES (?1, ?2)",
    [SQL_SERVICES] = "SELECT id, name FROM services ORDER BY id",
    [SQL_CLEAR_SERVICES] = "DELETE FROM services",
    [SQL_ADD_SERIES] = "INSERT INTO series (id, service, type, labels) VALUES (?1, ?2, ?3, ?4)",
    [SQL_SERIES] = "SELECT id, service, type, labels FROM series ORDER BY id",
    [SQL_CLEAR_SERIES] = "DELETE FROM series",
    [SQL_COUNT_SERIES] = "SELECT count(*) FROM series",
    [SQL_ADD_BLOCK] = "INSERT INTO blocks (series, start, last, level, windows, rows, total,"
                      " unsure, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    [SQL_BLOCKS] =
        "SELECT id, data, level FROM blocks WHERE series = ?1 AND start >= ?2 AND start < ?3"
        " AND last >= ?4 ORDER BY start",
    /* Those that may be rewritten: not of a batch whose other files aren't written yet. */
    [SQL_SURE_BLOCKS] = "SELECT id, data, level FROM blocks WHERE series = ?1 AND start >= ?2"
                        " AND start < ?3 AND last >= ?4"
                        " AND (unsure IS NULL OR unsure NOT IN (SELECT id FROM unsure))"
                        " ORDER BY start",
    [SQL_NEW_BLOCKS] = "SELECT id, series, start, last, data, level FROM blocks WHERE id > ?1"
                       " ORDER BY id",
    [SQL_LAST_BLOCK] = "SELECT coalesce(max(id), 0) FROM blocks",
    [SQL_BLOCKS_OF_SERIES] = "SELECT id, series, data FROM blocks",
    [SQL_BLOCK_IDS] = "SELECT id FROM blocks",
    [SQL_BLOCK] = "SELECT series, data FROM blocks WHERE id = ?1",
    [SQL_MOVE_BLOCK] = "UPDATE blocks SET series = ?2, data = ?3 WHERE id = ?1",
    [SQL_REMOVE_BLOCK] = "DELETE FROM blocks WHERE id = ?1",
    [SQL_INDEX_ENTRIES] = "SELECT series, start, last, level, total, id FROM blocks"
                          " INDEXED BY blocks_series ORDER BY series, start, last, level, total",
    [SQL_BLOCK_ENTRIES] = "SELECT series, start, last, level, total, id FROM blocks NOT INDEXED",
    [SQL_INDEX_CHUNKS] = "SELECT kind, service, first, rowid FROM chunks"
                         " INDEXED BY sqlite_autoindex_chunks_1 ORDER BY kind, service, first",
    [SQL_CHUNK_ENTRIES] = "SELECT kind, service, first, rowid FROM chunks NOT INDEXED",
    [SQL_INDEX_EXEMPLARS] = "SELECT series, start, rowid FROM exemplars"
                            " INDEXED BY exemplars_series ORDER BY series, start, rowid",
    [SQL_EXEMPLAR_ENTRIES] = "SELECT series, start, rowid FROM exemplars NOT INDEXED",
    [SQL_SPANS] = "SELECT min(start), max(last) FROM blocks WHERE series = ?1",
    [SQL_ALL_SPANS] = "SELECT series, start, last FROM blocks ORDER BY series, start",
    [SQL_TOTALS] = "SELECT total, start, last FROM blocks WHERE series = ?1 AND start >= ?2"
                   " AND start < ?3 AND last >= ?4",
    [SQL_FILE_STATS] =
        "SELECT count(*), coalesce(sum(windows), 0), coalesce(sum(rows), 0),"
        " coalesce(sum(level = 0), 0), coalesce(min(start), 0), coalesce(max(last), 0)"
        " FROM blocks",
    [SQL_CROWDED] = "SELECT series, start / ?1 FROM blocks GROUP BY series, start / ?1"
                    " HAVING sum(level = 0) >= ?2"
                    " OR (start / ?1 < ?3 AND sum(level = 0) > 0 AND count(*) > 1)",
    [SQL_ADD_EXEMPLAR] = "INSERT INTO exemplars (series, start, time, node, value, link, unsure)"
                         " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [SQL_EXEMPLARS] = "SELECT start, time, node, value, link FROM exemplars WHERE series = ?1"
                      " AND start >= ?2 AND start < ?3",
    [SQL_REMOVE_EXEMPLARS] = "DELETE FROM exemplars WHERE series = ?1 AND start >= ?2"
                             " AND start < ?3",
    [SQL_EXEMPLAR_NODES] = "SELECT rowid, series, node FROM exemplars",
    [SQL_MOVE_EXEMPLAR] = "UPDATE exemplars SET series = ?2, node = ?3 WHERE rowid = ?1",
    [SQL_DROP_EXEMPLAR] = "DELETE FROM exemplars WHERE rowid = ?1",
    [SQL_ADD_BATCH] = "INSERT INTO batches (id) VALUES (?1)",
    [SQL_FIND_BATCH] = "SELECT 1 FROM batches WHERE id = ?1",
    [SQL_ADD_LATE] = "INSERT INTO late (slot, count) VALUES (?1, 1)"
                     " ON CONFLICT (slot) DO UPDATE SET count = count + 1",
    [SQL_LATE] = "SELECT slot, count FROM late ORDER BY slot",
    [SQL_REMOVE_LATE] = "DELETE FROM late WHERE slot = ?1 AND count = ?2",
    [SQL_ADD_SLOT] = "INSERT OR IGNORE INTO slots (start) VALUES (?1)",
    [SQL_REMOVE_SLOTS] = "DELETE FROM slots WHERE start >= ?1 AND start < ?2",
    [SQL_SLOTS] = "SELECT start FROM slots WHERE start >= ?1 AND start < ?2 ORDER BY start",
    [SQL_NOTES] =
        "SELECT 'meta', key, value FROM meta UNION ALL SELECT 'late', slot, count FROM late"
        " UNION ALL SELECT 'slots', start, NULL FROM slots",
    [SQL_SET_META] = "INSERT INTO meta (key, value) VALUES (?1, ?2)"
                     " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    [SQL_GET_META] = "SELECT value FROM meta WHERE key = ?1",
    [SQL_REMOVE_META] = "DELETE FROM meta WHERE key = ?1",
    [SQL_ADD_UNSURE] = "INSERT INTO unsure (id, decider) VALUES (?1, ?2)",
    [SQL_UNSURE] = "SELECT id, decider FROM unsure",
    [SQL_REMOVE_UNSURE] = "DELETE FROM unsure WHERE id = ?1",
    [SQL_UNSURE_STARTS] = "SELECT DISTINCT start FROM blocks WHERE unsure = ?1",
    [SQL_REMOVE_UNSURE_BLOCKS] = "DELETE FROM blocks WHERE unsure = ?1",
    [SQL_REMOVE_UNSURE_EXEMPLARS] = "DELETE FROM exemplars WHERE unsure = ?1",
    [SQL_ADD_DECIDED] = "INSERT INTO decided (id) VALUES (?1)",
    [SQL_FIND_DECIDED] = "SELECT 1 FROM decided WHERE id = ?1",
    [SQL_CHECK] = "PRAGMA integrity_check(20)",
    [SQL_PAGES] = "PRAGMA page_count",
    [SQL_FREE_PAGES] = "PRAGMA freelist_count",
    [SQL_SHRINK] = "PRAGMA incremental_vacuum(1024)",
};

sqlite3_stmt *file_sql(struct file *file, struct connection *connection, enum sql which,
                       struct error *error)
{
    sqlite3_stmt **statement = &connection->statements[which];
    if (!*statement) {
        int code = sqlite3_prepare_v3(connection->db, statements[which], -1,
                                      SQLITE_PREPARE_PERSISTENT, statement, NULL);
        /* Our own statements are right: when they don't fit, the file's schema isn't what it was.
         */
        if (code == SQLITE_ERROR)
            code = SQLITE_CORRUPT;
        if (code != SQLITE_OK) {
            set_sql_error(file->path, connection->db, code, error);
            return NULL;
        }
    }
    sqlite3_reset(*statement);
    return *statement;
}

int file_step(struct file *file, sqlite3_stmt *statement, struct error *error)
{
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        return 1;
    int r = code == SQLITE_DONE
                ? 0
                : set_sql_error(file->path, sqlite3_db_handle(statement), code, error);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement); /* what was bound may be the caller's memory */
    return r;
}

int file_run(struct file *file, struct connection *connection, enum sql which, struct error *error)
{
    struct error local;
    error = error ? error : &local;
    sqlite3_stmt *statement = file_sql(file, connection, which, error);
    return statement ? file_step(file, statement, error) : error->code;
}

static int empty_log(struct file *file, int busy_ms, struct error *error)
{
    int r = file_open(file, error);
    if (r < 0)
        return r;
    sqlite3 *db = file->writer->db;
    sqlite3_busy_timeout(db, busy_ms);
    int code = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    sqlite3_busy_timeout(db, BUSY_MS);
    return code == SQLITE_OK ? 0 : set_sql_error(file->path, db, code, error);
}

int file_empty_log(struct file *file, struct error *error)
{
    return empty_log(file, LOG_BUSY_MS, error);
}

int file_tidy_log(struct file *file, struct error *error)
{
    pthread_mutex_lock(&file->write_lock);
    int r = empty_log(file, 0, error);
    pthread_mutex_unlock(&file->write_lock);
    return r == -EBUSY ? 0 : r;
}
