// SPDX-License-Identifier: Apache-2.0
// The audit log: see audit.h. Each write takes a lock on the file, so that processes neither mix
// lines nor rotate under each other.

#include "server/audit/audit.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/json_write.h"

#define NOTES_PER_MINUTE 16
#define MINUTE_NS 60000000000ll

struct audit {
    char *path;
    pthread_mutex_t lock; /* for what follows */
    int fd;
    bool failed; /* said so already */
    struct buffer notes;
    unsigned note_count; /* since `minute_ns` */
    uint64_t unnoted;    /* beyond */
    int64_t minute_ns;
};

/* Follows no link, since that could make us write to a file of somebody else's choice, and opens
 * regular files only: writing to a pipe can block. */
static int open_log(const char *path)
{
    struct stat status;
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd >= 0 && (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))) {
        close(fd);
        errno = EINVAL;
        fd = -1;
    }
    return fd;
}

int audit_open(const char *directory, struct audit **ret_audit, struct error *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/" AUDIT_FILE, directory);
    int fd = open_log(path);
    if (fd < 0)
        return error_set(error, -errno, "Failed to open the audit log %s: %s.", path,
                         errno == ELOOP    ? "it is a symbolic link"
                         : errno == EINVAL ? "it is not a regular file"
                                           : strerror(errno));
    struct audit *audit = memory_zalloc(1, sizeof(*audit));
    audit->path = memory_strdup(path);
    audit->fd = fd;
    pthread_mutex_init(&audit->lock, NULL);
    *ret_audit = audit;
    return 0;
}

void audit_close(struct audit *audit)
{
    if (!audit)
        return;
    audit_flush(audit);
    if (audit->fd >= 0)
        close(audit->fd);
    buffer_release(&audit->notes);
    pthread_mutex_destroy(&audit->lock);
    free(audit->path);
    free(audit);
}

static void add_field(struct json_writer *json, const char *name, const char *value)
{
    size_t length = value ? strnlen(value, AUDIT_TEXT_MAX) : 0;
    json_write_key(json, name);
    json_write_bytes(json, value ? value : "", length);
}

static void add_line(struct buffer *out, const struct audit_entry *entry)
{
    int64_t now = clock_ns(CLOCK_REALTIME);
    time_t seconds = (time_t)(now / 1000000000);
    struct tm tm;
    char text[40];
    gmtime_r(&seconds, &tm);
    size_t length = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + length, sizeof(text) - length, ".%03dZ", (int)(now / 1000000 % 1000));
    struct json_writer json = json_writer(out);
    json_write_object(&json);
    json_member_text(&json, "time", text);
    add_field(&json, "actor", entry->actor);
    add_field(&json, "tenant", entry->tenant);
    add_field(&json, "action", entry->action);
    add_field(&json, "target", entry->target);
    add_field(&json, "outcome", entry->outcome);
    add_field(&json, "remote", entry->remote);
    json_write_object_end(&json);
    buffer_add_char(out, '\n');
}

/* ---- writing; with the lock held ---- */

/* The file under its name, locked: another process may have rotated it since we opened it. */
static int lock_file(struct audit *audit, struct stat *status)
{
    for (unsigned tries = 0; tries < 8; tries++) {
        struct stat named;
        if (audit->fd < 0 && (audit->fd = open_log(audit->path)) < 0)
            return -errno;
        if (flock(audit->fd, LOCK_EX) < 0 || fstat(audit->fd, status) < 0)
            return -errno;
        if (!lstat(audit->path, &named) && named.st_ino == status->st_ino &&
            named.st_dev == status->st_dev)
            return 0;
        close(audit->fd);
        audit->fd = -1;
    }
    return -EBUSY;
}

static void rotate(struct audit *audit)
{
    char from[PATH_MAX], to[PATH_MAX];
    for (unsigned i = AUDIT_FILES; i; i--) {
        snprintf(to, sizeof(to), "%s.%u", audit->path, i);
        if (i > 1)
            snprintf(from, sizeof(from), "%s.%u", audit->path, i - 1);
        else
            snprintf(from, sizeof(from), "%s", audit->path);
        rename(from, to);
    }
    close(audit->fd);
    audit->fd = -1;
}

/* True when the file ends in the middle of a line, because its writer was interrupted. */
static bool is_torn(const struct audit *audit, const struct stat *status)
{
    char last = '\n';
    int fd = status->st_size ? open(audit->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (fd >= 0 && pread(fd, &last, 1, status->st_size - 1) != 1)
        last = '\n';
    if (fd >= 0)
        close(fd);
    return last != '\n';
}

static void append(struct audit *audit, const struct buffer *lines)
{
    struct stat status;
    int r = lock_file(audit, &status);
    if (!r && status.st_size >= (off_t)AUDIT_BYTES) {
        rotate(audit);
        r = lock_file(audit, &status);
    }
    if (!r && is_torn(audit, &status))
        r = file_write_all(audit->fd, "\n", 1);
    if (!r)
        r = file_write_all(audit->fd, lines->data, lines->length);
    if (!r && fdatasync(audit->fd) < 0)
        r = -errno;
    if (audit->fd >= 0)
        flock(audit->fd, LOCK_UN);
    if (r < 0 && !audit->failed)
        log_error("Failed to write %s: %s; audit events are being lost.", audit->path,
                  strerror(-r));
    audit->failed = r < 0;
}

void audit_write(struct audit *audit, const struct audit_entry *entry)
{
    if (!audit)
        return;
    _cleanup_buffer_ struct buffer line = {0};
    add_line(&line, entry);
    pthread_mutex_lock(&audit->lock);
    append(audit, &line);
    pthread_mutex_unlock(&audit->lock);
}

/* ---- what strangers cause ---- */

static void end_minute(struct audit *audit)
{
    if (audit->unnoted) {
        char text[64];
        snprintf(text, sizeof(text), "%llu more like these, not logged individually",
                 (unsigned long long)audit->unnoted);
        add_line(&audit->notes, &(struct audit_entry){.action = "refused", .outcome = text});
    }
    audit->note_count = 0;
    audit->unnoted = 0;
    audit->minute_ns = monotonic_ns();
}

void audit_note(struct audit *audit, const struct audit_entry *entry)
{
    if (!audit)
        return;
    pthread_mutex_lock(&audit->lock);
    if (monotonic_ns() - audit->minute_ns > MINUTE_NS)
        end_minute(audit);
    if (audit->note_count < NOTES_PER_MINUTE) {
        audit->note_count++;
        add_line(&audit->notes, entry);
    } else {
        audit->unnoted++;
    }
    pthread_mutex_unlock(&audit->lock);
}

void audit_flush(struct audit *audit)
{
    if (!audit)
        return;
    pthread_mutex_lock(&audit->lock);
    if (audit->unnoted && monotonic_ns() - audit->minute_ns > MINUTE_NS)
        end_minute(audit);
    if (audit->notes.length) {
        append(audit, &audit->notes);
        audit->notes.length = 0;
    }
    pthread_mutex_unlock(&audit->lock);
}

const char *audit_local_actor(char text[AUDIT_ACTOR_BYTES])
{
    struct passwd entry, *found = NULL;
    char room[4096];
    if (!getpwuid_r(getuid(), &entry, room, sizeof(room), &found) && found)
        snprintf(text, AUDIT_ACTOR_BYTES, "local user %s", found->pw_name);
    else
        snprintf(text, AUDIT_ACTOR_BYTES, "local user %u", getuid());
    return text;
}

/* ---- reading ---- */

/* Whole lines of a file that are the tenant's, last first, as long as there is room. Quotes within
 * a text are escaped, so what is looked for can only be the field itself. */
static size_t take_lines(const struct buffer *content, const char *tenant, size_t room,
                         struct buffer *reversed)
{
    _cleanup_buffer_ struct buffer field = {0};
    size_t taken = 0, end = content->length;
    if (tenant) {
        buffer_add_text(&field, ",\"tenant\":");
        text_escape_json(&field, tenant, strlen(tenant));
        buffer_add_char(&field, ',');
    }
    while (end && content->data[end - 1] != '\n')
        end--; /* torn */
    while (end && taken < room) {
        size_t begin = end - 1;
        while (begin && content->data[begin - 1] != '\n')
            begin--;
        if (content->data[begin] == '{' &&
            (!tenant || memmem(content->data + begin, end - begin, field.data, field.length))) {
            buffer_add(reversed, content->data + begin, end - begin);
            taken++;
        }
        end = begin;
    }
    return taken;
}

static void turn_around(const struct buffer *reversed, struct buffer *out)
{
    size_t end = reversed->length;
    while (end) {
        size_t begin = end - 1;
        while (begin && reversed->data[begin - 1] != '\n')
            begin--;
        buffer_add(out, reversed->data + begin, end - begin);
        end = begin;
    }
}

int audit_read(const char *directory, const char *tenant, size_t limit, struct buffer *ret_lines,
               struct error *error)
{
    _cleanup_buffer_ struct buffer reversed = {0};
    size_t count = 0;
    for (unsigned i = 0; i <= AUDIT_FILES && count < limit; i++) {
        _cleanup_buffer_ struct buffer content = {0};
        char path[PATH_MAX], number[16] = "";
        if (i)
            snprintf(number, sizeof(number), ".%u", i);
        snprintf(path, sizeof(path), "%s/" AUDIT_FILE "%s", directory, number);
        struct error local = {0};
        struct stat status;
        if (!lstat(path, &status) && !S_ISREG(status.st_mode))
            return error_set(error, -ELOOP, "%s is not a regular file.", path);
        int r = file_read(path, 2 * AUDIT_BYTES, &content, &local);
        if (r == -ENOENT)
            continue;
        if (r < 0) {
            if (error)
                *error = local;
            return r;
        }
        count += take_lines(&content, tenant, limit - count, &reversed);
    }
    turn_around(&reversed, ret_lines);
    return 0;
}
