// SPDX-License-Identifier: Apache-2.0
// Files of spans: appended to, read block by block, and replaced as a whole.

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "spans/index_parts.h"

void segment_path(const struct span_index *index, const char *tenant, uint64_t number,
                  char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s/%012llu.spans", index->directory, tenant,
             (unsigned long long)number);
}

static int sync_directory(const char *path, struct error *error)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, -errno, "Cannot open %s", path);
    int r = fsync(fd) < 0 ? error_set_errno(error, -errno, "Cannot sync %s", path) : 0;
    close(fd);
    return r;
}

/* The directory of a tenant, which may be new. */
static int make_directory(const struct span_index *index, const char *tenant, char path[PATH_MAX],
                          struct error *error)
{
    snprintf(path, PATH_MAX, "%s/%s", index->directory, tenant);
    if (!mkdir(path, 0700))
        return sync_directory(index->directory, error);
    return errno == EEXIST ? 0 : error_set_errno(error, -errno, "Cannot create %s", path);
}

int segment_create(const struct span_index *index, const char *tenant, struct segment *segment,
                   struct error *error)
{
    char path[PATH_MAX], directory[PATH_MAX];
    int r = 0;
    if (index->directory) {
        if ((r = make_directory(index, tenant, directory, error)) < 0)
            return r;
        segment_path(index, tenant, segment->number, path);
        segment->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    } else {
        strcpy(path, "memory for spans");
        segment->fd = memfd_create("spans", MFD_CLOEXEC);
    }
    if (segment->fd < 0)
        return error_set_errno(error, -errno, "Cannot create %s", path);
    r = file_write_all(segment->fd, SEGMENT_HEAD, SEGMENT_HEAD_BYTES);
    if (r < 0)
        error_set_errno(error, r, "Cannot write %s", path);
    if (!r && index->directory && fsync(segment->fd) < 0)
        r = error_set_errno(error, -errno, "Cannot sync %s", path);
    if (!r && index->directory)
        r = sync_directory(directory, error);
    if (r < 0) {
        close(segment->fd);
        segment->fd = -1;
        if (index->directory)
            unlink(path);
        return r;
    }
    segment->bytes = SEGMENT_HEAD_BYTES;
    return 0;
}

int segment_append(struct segment *segment, const struct buffer *blocks, struct error *error)
{
    off_t at = (off_t)segment->bytes;
    int r = lseek(segment->fd, at, SEEK_SET) < 0
                ? -errno
                : file_write_all(segment->fd, blocks->data, blocks->length);
    if (!r && fdatasync(segment->fd) < 0)
        r = -errno;
    if (r < 0) {
        /* The next start truncates a tail behind the known end, too. */
        (void)!ftruncate(segment->fd, at);
        return error_set_errno(error, r, "Cannot write spans");
    }
    segment->bytes += blocks->length;
    return 0;
}

int segment_open(const struct span_index *index, const char *tenant, const struct segment *segment,
                 int *ret_fd)
{
    char path[PATH_MAX];
    if (segment->fd < 0)
        segment_path(index, tenant, segment->number, path);
    int fd = segment->fd >= 0 ? fcntl(segment->fd, F_DUPFD_CLOEXEC, 3)
                              : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

/* 0, or -EBADMSG when there are not so many bytes. */
static int read_at(int fd, void *bytes, size_t length, uint64_t offset)
{
    for (size_t done = 0; done < length;) {
        ssize_t got = pread(fd, (char *)bytes + done, length - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got ? -errno : -EBADMSG;
        done += (size_t)got;
    }
    return 0;
}

/* The head at an offset, of a block that ends before `bytes`. */
static int read_head(int fd, uint64_t offset, uint64_t bytes, struct span_block_head *ret_head)
{
    uint8_t raw[SPAN_BLOCK_HEAD_BYTES];
    if (bytes - offset < sizeof(raw))
        return -EBADMSG;
    int r = read_at(fd, raw, sizeof(raw), offset);
    if (!r)
        r = span_block_head_read(raw, ret_head);
    if (!r && span_block_body_bytes(ret_head) > bytes - offset - sizeof(raw))
        r = -EBADMSG;
    return r;
}

#define SCAN_BYTES (256u << 10)

/* The next block at or behind an offset where there is none; `bytes` if no other follows. */
static uint64_t find_block(int fd, uint64_t offset, uint64_t bytes,
                           struct span_block_head *ret_head)
{
    _cleanup_free_ uint8_t *some = memory_alloc(SCAN_BYTES);
    while (offset < bytes) {
        size_t now = (size_t)MIN(bytes - offset, (uint64_t)SCAN_BYTES);
        if (now < SPAN_BLOCK_HEAD_BYTES || read_at(fd, some, now, offset) < 0)
            return bytes;
        for (size_t i = 0; i + SPAN_BLOCK_HEAD_BYTES <= now; i++)
            if (!span_block_head_read(some + i, ret_head) &&
                span_block_body_bytes(ret_head) <= bytes - offset - i - SPAN_BLOCK_HEAD_BYTES)
                return offset + i;
        offset += now - SPAN_BLOCK_HEAD_BYTES + 1;
    }
    return bytes;
}

/* Whether what is behind the last block can be left of a write that a crash has cut off: a head
 * whose block ends behind the file, or bytes that were never written. */
static bool is_cut_off(int fd, uint64_t offset, uint64_t bytes)
{
    uint8_t raw[SPAN_BLOCK_HEAD_BYTES];
    _cleanup_free_ uint8_t *some = memory_alloc(SCAN_BYTES);
    struct span_block_head head;
    if (bytes - offset < sizeof(raw) ||
        (!read_at(fd, raw, sizeof(raw), offset) && !span_block_head_read(raw, &head)))
        return true;
    while (offset < bytes) {
        size_t now = (size_t)MIN(bytes - offset, (uint64_t)SCAN_BYTES);
        if (read_at(fd, some, now, offset) < 0)
            return false;
        for (size_t i = 0; i < now; i++)
            if (some[i])
                return false;
        offset += now;
    }
    return true;
}

/* Nobody knows which times damaged places are of: at most until the file was written. */
static void widen(struct segment *segment, const struct stat *status)
{
    int64_t written_ns = (int64_t)status->st_mtim.tv_sec * 1000000000 + status->st_mtim.tv_nsec;
    segment->first_ns = 0;
    segment->last_ns = segment->blocks ? MAX(segment->last_ns, written_ns) : written_ns;
}

static void count_block(struct segment *segment, const struct span_block_head *head)
{
    segment->first_ns = segment->blocks ? MIN(segment->first_ns, head->first_ns) : head->first_ns;
    segment->last_ns = segment->blocks ? MAX(segment->last_ns, head->last_ns) : head->last_ns;
    segment->blocks++;
    segment->spans += head->count;
}

int segment_examine(const char *path, bool mend, struct segment *segment, struct error *error)
{
    char start[SEGMENT_HEAD_BYTES];
    struct span_block_head head;
    struct stat status;
    int fd = open(path, (mend ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, -errno, "Cannot open %s", path);
    int r = fstat(fd, &status) < 0 ? -errno : read_at(fd, start, sizeof(start), 0);
    if (!r && memcmp(start, SEGMENT_HEAD, sizeof(start)))
        r = -EBADMSG;
    if (r < 0) {
        close(fd);
        return error_set(error, -EBADMSG, "%s is not a segment of spans.", path);
    }
    uint64_t bytes = (uint64_t)status.st_size, at = SEGMENT_HEAD_BYTES, end = at;
    while (at < bytes) {
        if (read_head(fd, at, bytes, &head) < 0) {
            uint64_t next = find_block(fd, at, bytes, &head);
            bool damaged = next < bytes || !is_cut_off(fd, at, bytes);
            segment->damaged += damaged;
            at = next;
            end = damaged ? next : end;
            continue;
        }
        count_block(segment, &head);
        end = at += SPAN_BLOCK_HEAD_BYTES + span_block_body_bytes(&head);
    }
    segment->bytes = end;
    if (segment->damaged)
        widen(segment, &status);
    if (!mend && !r) {
        segment->fd = fd;
        return 0;
    }
    if (end < bytes && mend) {
        log_info("%s ends with %llu bytes of an incomplete write; they are removed.", path,
                 (unsigned long long)(bytes - end));
        if (ftruncate(fd, (off_t)end) < 0)
            r = error_set_errno(error, -errno, "Cannot shorten %s", path);
    }
    close(fd);
    return r;
}

struct block_reader {
    int fd;
    const struct span_query *query;
    span_block_fn *fn;
    void *context;
    struct span_read *read;
    struct span_batch batch;
    uint8_t *body;
    size_t body_room;
};

static int read_block(struct block_reader *reader, uint64_t offset,
                      const struct span_block_head *head)
{
    const struct span_query *query = reader->query;
    size_t body = span_block_body_bytes(head);
    if (head->last_ns < query->from_ns || head->first_ns >= query->to_ns)
        return 0;
    array_reserve(reader->body, reader->body_room, body);
    int r = read_at(reader->fd, reader->body, query->trace_id ? head->filter_bytes : body, offset);
    if (r < 0)
        return r;
    if (query->trace_id) {
        if (!span_block_may_have(head, reader->body, query->trace_id))
            return 0;
        if ((r = read_at(reader->fd, reader->body, body, offset)) < 0)
            return r;
    }
    span_batch_clear(&reader->batch);
    if (span_block_decode(head, reader->body, &reader->batch) < 0) {
        reader->read->damaged++;
        return 0;
    }
    reader->read->blocks++;
    reader->read->spans += reader->batch.count;
    return reader->fn(reader->context, &reader->batch);
}

int segment_read(int fd, uint64_t bytes, const struct span_query *query, span_block_fn *fn,
                 void *context, struct span_read *read)
{
    struct block_reader reader = {
        .fd = fd, .query = query, .fn = fn, .context = context, .read = read};
    struct span_block_head head;
    int r = 0;
    for (uint64_t at = SEGMENT_HEAD_BYTES; !r && at < bytes;) {
        if (query->cancelled && atomic_load(query->cancelled)) {
            r = -ECANCELED;
        } else if (read_head(fd, at, bytes, &head) < 0) {
            read->damaged++;
            at = find_block(fd, at, bytes, &head);
        } else {
            at += SPAN_BLOCK_HEAD_BYTES;
            r = read_block(&reader, at, &head);
            if (r == -EBADMSG) { /* the file has become shorter */
                read->damaged++;
                r = 0;
            }
            at += span_block_body_bytes(&head);
        }
    }
    span_batch_release(&reader.batch);
    free(reader.body);
    return r;
}

static int replace_file(const struct span_index *index, const char *tenant,
                        const struct segment *segment, const struct buffer *content,
                        struct error *error)
{
    char path[PATH_MAX];
    segment_path(index, tenant, segment->number, path);
    if (content->length)
        return file_write_atomic(path, content->data, content->length, error);
    return unlink(path) < 0 && errno != ENOENT
               ? error_set_errno(error, -errno, "Cannot remove %s", path)
               : 0;
}

static int replace_memory(struct segment *segment, const struct buffer *content,
                          struct error *error)
{
    int fd = memfd_create("spans", MFD_CLOEXEC);
    int r = fd < 0 ? -errno : file_write_all(fd, content->data, content->length);
    if (r < 0) {
        if (fd >= 0)
            close(fd);
        return error_set_errno(error, r, "Cannot write spans");
    }
    close(segment->fd); /* readers have descriptors of their own */
    segment->fd = fd;
    return 0;
}

int segment_replace(struct span_index *index, const char *tenant, struct segment *segment,
                    const struct span_batch *batch, struct error *error)
{
    _cleanup_buffer_ struct buffer content = {0};
    struct segment after = *segment;
    if (batch->count) {
        buffer_add(&content, SEGMENT_HEAD, SEGMENT_HEAD_BYTES);
        span_block_encode(batch, &content);
    }
    int r = index->directory ? replace_file(index, tenant, &after, &content, error)
                             : replace_memory(&after, &content, error);
    if (r < 0)
        return r;
    after.bytes = content.length;
    after.blocks = after.spans = after.damaged = 0;
    after.sorted = true;
    for (uint64_t at = SEGMENT_HEAD_BYTES; at < content.length;) {
        struct span_block_head head;
        if (span_block_head_read((const uint8_t *)content.data + at, &head) < 0)
            break;
        count_block(&after, &head);
        at += SPAN_BLOCK_HEAD_BYTES + span_block_body_bytes(&head);
    }
    *segment = after;
    return 0;
}
