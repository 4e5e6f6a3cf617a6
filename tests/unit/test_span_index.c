// SPDX-License-Identifier: Apache-2.0
// The index of spans: durable, by tenant, within its limits, and true after crashes.

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "spans/index.h"
#include "unit.h"

#define SECOND 1000000000ll
#define NOW (1794700000 * SECOND)

static int64_t clock_of_test(void *context)
{
    return *(int64_t *)context;
}

static struct span_index *open_index(const char *directory, int64_t *now, size_t segment_spans)
{
    struct span_options options = {.segment_spans = segment_spans,
                                   .now = clock_of_test,
                                   .now_context = now,
                                   .retention_ns = 86400 * SECOND};
    struct span_index *index = NULL;
    struct error error = {0};
    if (span_index_open(directory, &options, &index, &error) < 0)
        fail_msg("%s", error.text);
    return index;
}

static void add_spans(struct span_batch *batch, uint32_t first, uint32_t count, int64_t start_ns,
                      const char *service)
{
    for (uint32_t i = first; i < first + count; i++) {
        uint32_t text = span_batch_text(batch, service, strlen(service));
        struct span *span = span_batch_add(batch);
        memcpy(span->trace_id, &i, sizeof(i));
        span->trace_id[15] = span->span_id[0] = 1;
        memcpy(span->span_id + 4, &i, sizeof(i));
        span->start_ns = start_ns + i;
        span->duration_ns = i;
        span->service = text;
        span->kind = SPAN_SERVER;
    }
}

static int write_spans(struct span_index *index, const char *tenant, uint32_t first, uint32_t count,
                       int64_t start_ns, const char *service, struct span_written *written)
{
    _cleanup_span_batch_ struct span_batch batch = {0};
    struct error error = {0};
    add_spans(&batch, first, count, start_ns, service);
    return span_index_write(index, tenant, &batch, 0, NULL, NULL, written, &error);
}

struct counting {
    const struct span_query *query;
    const char *service;
    uint64_t spans;
    int64_t sum;
};

static int count_spans(void *context, const struct span_batch *batch)
{
    struct counting *counting = context;
    for (size_t i = 0; i < batch->count; i++) {
        const struct span *span = &batch->list[i];
        if (span->start_ns < counting->query->from_ns || span->start_ns >= counting->query->to_ns ||
            (counting->query->trace_id && memcmp(counting->query->trace_id, span->trace_id, 16)) ||
            (counting->service && strcmp(batch->texts[span->service], counting->service)))
            continue;
        counting->spans++;
        counting->sum += span->duration_ns;
    }
    return 0;
}

static struct counting count(struct span_index *index, const char *tenant, const char *service,
                             int64_t from_ns, int64_t to_ns, const uint8_t *trace_id)
{
    struct span_query query = {
        .tenant = tenant, .from_ns = from_ns, .to_ns = to_ns, .trace_id = trace_id};
    struct counting counting = {.query = &query, .service = service};
    struct span_read read = {0};
    struct error error = {0};
    if (span_index_read(index, &query, count_spans, &counting, &read, &error) < 0)
        fail_msg("%s", error.text);
    return counting;
}

static uint64_t all_of(struct span_index *index, const char *tenant)
{
    return count(index, tenant, NULL, 0, INT64_MAX, NULL).spans;
}

static void maintain(struct span_index *index)
{
    struct error error = {0};
    int r;
    while ((r = span_index_maintain(index, &error)) > 0)
        continue;
    if (r < 0)
        fail_msg("%s", error.text);
}

static void make_directory(char path[64])
{
    strcpy(path, "spans-XXXXXX");
    assert_non_null(mkdtemp(path));
}

/* Both kinds, with segments so small that there are several. */
static void test_round(void **state)
{
    (void)state;
    for (int disk = 0; disk < 2; disk++) {
        char directory[64];
        int64_t now = NOW;
        struct span_written written;
        make_directory(directory);
        struct span_index *index = open_index(disk ? directory : NULL, &now, 100);
        for (uint32_t i = 0; i < 50; i++)
            assert_int_equal(
                write_spans(index, "a", i * 10, 10, NOW - 60 * SECOND, "shop", &written), 0);
        assert_int_equal(write_spans(index, "b", 0, 7, NOW - 60 * SECOND, "shop", &written), 0);
        assert_int_equal(written.stored, 7);
        for (int round = 0; round < (disk ? 3 : 2); round++) {
            assert_int_equal(all_of(index, "a"), 500);
            assert_int_equal(all_of(index, "b"), 7);
            assert_int_equal(all_of(index, "c"), 0);
            struct counting some =
                count(index, "a", "shop", NOW - 60 * SECOND + 100, NOW - 60 * SECOND + 200, NULL);
            assert_int_equal(some.spans, 100);
            assert_int_equal(some.sum, 100 * 100 + 99 * 50);
            uint32_t wanted = 321;
            uint8_t trace[16] = {[15] = 1};
            memcpy(trace, &wanted, sizeof(wanted));
            assert_int_equal(count(index, "a", NULL, 0, INT64_MAX, trace).sum, 321);
            if (round == 1 && disk) { /* after a restart nothing is missing */
                span_index_close(index);
                index = open_index(directory, &now, 100);
            }
            maintain(index);
        }
        span_index_close(index);
    }
}

static void test_times(void **state)
{
    int64_t now = NOW;
    struct span_written written;
    struct span_stats stats;
    (void)state;
    struct span_index *index = open_index(NULL, &now, 100);
    write_spans(index, "a", 0, 3, NOW - 2 * 86400 * SECOND, "shop", &written);
    assert_int_equal(written.too_old, 3);
    write_spans(index, "a", 0, 4, NOW + 3600 * SECOND, "shop", &written);
    assert_int_equal(written.too_new, 4);
    write_spans(index, "a", 0, 100, NOW - 100 * SECOND, "shop", &written);
    write_spans(index, "a", 100, 5, NOW, "shop", &written);
    assert_int_equal(all_of(index, "a"), 105);
    now += 86400 * SECOND; /* the full segment is too old then */
    maintain(index);
    assert_int_equal(all_of(index, "a"), 5);
    span_index_stats(index, &stats);
    assert_int_equal(stats.too_old, 3);
    assert_int_equal(stats.too_new, 4);
    assert_int_equal(stats.expired, 100);
    span_index_close(index);
}

/* Who has most loses the oldest. */
static void test_limit(void **state)
{
    int64_t now = NOW;
    struct span_options options = {.disk_limit_bytes = 64u << 10,
                                   .retention_ns = 86400 * SECOND,
                                   .now = clock_of_test,
                                   .now_context = &now};
    struct span_index *index;
    struct span_written written;
    struct span_stats stats;
    (void)state;
    assert_int_equal(span_index_open(NULL, &options, &index, NULL), 0);
    write_spans(index, "small", 0, 50, NOW, "shop", &written);
    for (uint32_t i = 0; i < 200; i++) {
        write_spans(index, "large", i * 100, 100, NOW, "shop", &written);
        maintain(index);
        span_index_stats(index, &stats);
        assert_true(stats.bytes < options.disk_limit_bytes * 3 / 2);
    }
    assert_int_equal(all_of(index, "small"), 50);
    assert_true(stats.shed > 0);
    assert_int_equal(all_of(index, "large") + stats.shed, 20000);
    span_index_close(index);
}

static void first_file(const char *directory, char path[512])
{
    char tenant[512];
    snprintf(tenant, sizeof(tenant), "%s/spans/a", directory);
    DIR *list = opendir(tenant);
    assert_non_null(list);
    struct dirent *entry;
    while ((entry = readdir(list)))
        if (*entry->d_name != '.')
            snprintf(path, 512, "%s/spans/a/%.100s", directory, entry->d_name);
    closedir(list);
}

/* A crash while spans were appended leaves a part of a block, which was not acknowledged. */
static void test_cut_off(void **state)
{
    char directory[64], path[512];
    int64_t now = NOW;
    struct span_written written;
    struct stat before;
    (void)state;
    make_directory(directory);
    struct span_index *index = open_index(directory, &now, 1000);
    write_spans(index, "a", 0, 10, NOW, "shop", &written);
    first_file(directory, path);
    assert_int_equal(stat(path, &before), 0);
    write_spans(index, "a", 10, 10, NOW, "shop", &written);
    span_index_close(index);
    struct stat after;
    assert_int_equal(stat(path, &after), 0);
    for (off_t length = after.st_size - 1; length >= before.st_size; length -= 7) {
        assert_int_equal(truncate(path, length), 0);
        index = open_index(directory, &now, 1000);
        assert_int_equal(all_of(index, "a"), 10);
        span_index_close(index);
        assert_int_equal(stat(path, &after), 0);
        assert_int_equal(after.st_size, before.st_size);
        after.st_size = before.st_size;
        assert_int_equal(truncate(path, length), 0); /* zeroes are not blocks either */
    }
    index = open_index(directory, &now, 1000);
    write_spans(index, "a", 50, 5, NOW, "shop", &written);
    assert_int_equal(all_of(index, "a"), 15);
    span_index_close(index);
}

static int by_service(void *context, const struct span_batch *batch, const struct span *span,
                      struct error *error)
{
    (void)error;
    return span && (!context || !strcmp(batch->texts[span->service], context));
}

static uint64_t delete_service(struct span_index *index, const char *tenant, const char *service,
                               bool dry_run)
{
    struct span_query query = {.tenant = tenant, .to_ns = INT64_MAX};
    uint64_t removed;
    assert_int_equal(
        span_index_delete(index, &query, by_service, (void *)service, dry_run, &removed, NULL), 0);
    return removed;
}

static void test_delete(void **state)
{
    char directory[64];
    int64_t now = NOW;
    struct span_written written;
    (void)state;
    make_directory(directory);
    struct span_index *index = open_index(directory, &now, 100);
    for (uint32_t i = 0; i < 30; i++)
        write_spans(index, "a", i * 10, 10, NOW, i % 2 ? "shop" : "stock", &written);
    assert_int_equal(delete_service(index, "a", "shop", true), 150);
    assert_int_equal(all_of(index, "a"), 300);
    assert_int_equal(delete_service(index, "a", "shop", false), 150);
    assert_int_equal(count(index, "a", "shop", 0, INT64_MAX, NULL).spans, 0);
    assert_int_equal(all_of(index, "a"), 150);
    assert_int_equal(delete_service(index, "a", NULL, false), 150);
    assert_int_equal(all_of(index, "a"), 0);
    write_spans(index, "a", 0, 10, NOW, "shop", &written);
    assert_int_equal(all_of(index, "a"), 10);
    span_index_close(index);
}

static void test_repeated(void **state)
{
    int64_t now = NOW;
    struct span_written written;
    (void)state;
    struct span_index *index = open_index(NULL, &now, 100);
    for (int i = 0; i < 2; i++) {
        _cleanup_span_batch_ struct span_batch batch = {0};
        add_spans(&batch, 0, 10, NOW, "shop");
        assert_int_equal(span_index_write(index, "a", &batch, 77, NULL, NULL, &written, NULL), 0);
        assert_int_equal(written.repeated, i);
    }
    assert_int_equal(all_of(index, "a"), 10);
    /* What another tenant has sent is not a repetition, nor is what was deleted meanwhile. */
    for (int i = 0; i < 2; i++) {
        _cleanup_span_batch_ struct span_batch batch = {0};
        add_spans(&batch, 0, 10, NOW, "shop");
        const char *tenant = i ? "a" : "b";
        assert_int_equal(span_index_write(index, tenant, &batch, 77, NULL, NULL, &written, NULL),
                         0);
        assert_false(written.repeated);
        assert_int_equal(all_of(index, tenant), 10);
        delete_service(index, "a", NULL, false);
    }
    span_index_close(index);
}

static void flip(const char *path, off_t offset)
{
    char byte;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, offset), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
    close(fd);
}

static int find_text(void *context, const char *text)
{
    const char **wanted = context;
    if (strstr(text, *wanted))
        *wanted = NULL;
    return 0;
}

static bool has_problem(struct span_index *index, const char *text)
{
    span_index_problems(index, find_text, &text);
    return !text;
}

static uint64_t damage_of(struct span_index *index, const char *tenant)
{
    struct span_query query = {.tenant = tenant, .to_ns = INT64_MAX};
    struct counting counting = {.query = &query};
    struct span_read read = {0};
    assert_int_equal(span_index_read(index, &query, count_spans, &counting, &read, NULL), 0);
    return read.damaged;
}

static uint64_t damaged_files(struct span_index *index)
{
    struct span_stats stats;
    span_index_stats(index, &stats);
    return stats.damaged_files;
}

/* A damaged block loses its own spans, and nothing that follows it; it is remembered over restarts
 * and maintenance. A head, the filter, the columns, and the head of the last block. */
static void test_damaged_block(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        char directory[64], path[512];
        int64_t now = NOW;
        struct span_written written;
        struct stat first, second;
        make_directory(directory);
        struct span_index *index = open_index(directory, &now, 1000);
        write_spans(index, "a", 0, 10, NOW, "shop", &written);
        first_file(directory, path);
        assert_int_equal(stat(path, &first), 0);
        write_spans(index, "a", 10, 10, NOW, "shop", &written);
        assert_int_equal(stat(path, &second), 0);
        write_spans(index, "a", 20, 10, NOW, "shop", &written);
        assert_int_equal(damaged_files(index), 0);
        flip(path, kind == 0 ? first.st_size : kind == 1 ? first.st_size + 57 : second.st_size - 3);
        for (int round = 0; round < 3; round++) {
            assert_int_equal(all_of(index, "a"), 20);
            assert_int_equal(damage_of(index, "a"), 1);
            assert_int_equal(damaged_files(index), 1);
            assert_true(has_problem(index, "/spans/a/"));
            span_index_close(index);
            index = open_index(directory, &now, 1000);
            maintain(index);
        }
        assert_false(has_problem(index, "/spans/b/"));
        span_index_close(index);
    }
}

/* Of a file with one block nothing is left; it still says so, until it is too old. */
static void test_damaged_only(void **state)
{
    char directory[64], path[512];
    int64_t now = NOW;
    struct span_written written;
    (void)state;
    make_directory(directory);
    struct span_index *index = open_index(directory, &now, 1000);
    write_spans(index, "a", 0, 10, NOW, "shop", &written);
    first_file(directory, path);
    flip(path, 20);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    now = status.st_mtim.tv_sec * SECOND; /* the file's time counts */
    for (int round = 0; round < 3; round++) {
        span_index_close(index);
        index = open_index(directory, &now, 1000);
        maintain(index);
        assert_int_equal(all_of(index, "a"), 0);
        assert_int_equal(damage_of(index, "a"), 1);
    }
    now += 2 * 86400 * SECOND;
    maintain(index);
    assert_int_equal(damaged_files(index), 0);
    span_index_close(index);
}

/* A file whose beginning is damaged stays, and every answer says that something is missing. */
static void test_damaged_file(void **state)
{
    char directory[64], path[512];
    int64_t now = NOW;
    struct span_written written;
    (void)state;
    make_directory(directory);
    struct span_index *index = open_index(directory, &now, 1000);
    write_spans(index, "a", 0, 10, NOW, "shop", &written);
    write_spans(index, "b", 0, 10, NOW, "shop", &written);
    first_file(directory, path);
    flip(path, 3);
    span_index_close(index);
    index = open_index(directory, &now, 1000);
    write_spans(index, "a", 10, 10, NOW, "shop", &written);
    maintain(index);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(all_of(index, "a"), 10);
    assert_int_equal(damage_of(index, "a"), 1);
    assert_int_equal(damage_of(index, "b"), 0);
    assert_int_equal(damaged_files(index), 1);
    assert_true(has_problem(index, path));
    span_index_close(index);
}

/* A clock that jumps removes nothing until somebody confirms it. */
static void test_clock(void **state)
{
    int64_t now = NOW;
    struct span_options options = {.segment_spans = 10,
                                   .now = clock_of_test,
                                   .now_context = &now,
                                   .clock_limit_ns = 7 * 86400 * SECOND,
                                   .retention_ns = 86400 * SECOND};
    struct span_index *index;
    struct span_written written;
    (void)state;
    assert_int_equal(span_index_open(NULL, &options, &index, NULL), 0);
    for (uint32_t i = 0; i < 3; i++)
        write_spans(index, "a", i * 10, 10, NOW, "shop", &written);
    maintain(index);
    now += 400 * 86400 * SECOND;
    maintain(index);
    assert_int_equal(all_of(index, "a"), 30);
    assert_true(has_problem(index, "retention resume"));
    /* Senders with the same clock don't make it true. */
    write_spans(index, "a", 30, 10, now, "shop", &written);
    maintain(index);
    assert_int_equal(all_of(index, "a"), 40);
    now -= 400 * 86400 * SECOND;
    maintain(index);
    assert_false(has_problem(index, "retention resume"));
    assert_int_equal(all_of(index, "a"), 40);
    now += 400 * 86400 * SECOND;
    maintain(index);
    assert_int_equal(all_of(index, "a"), 40);
    span_index_resume(index);
    maintain(index);
    assert_int_equal(all_of(index, "a"), 10);
    assert_false(has_problem(index, "retention resume"));
    span_index_close(index);
}

/* Of tenants that have stopped pushing, too, spans go when they are too old. */
static void test_silent_tenant(void **state)
{
    int64_t now = NOW;
    struct span_written written;
    (void)state;
    struct span_index *index = open_index(NULL, &now, 1000);
    write_spans(index, "a", 0, 5, NOW, "shop", &written);
    now += 2 * 86400 * SECOND;
    maintain(index);
    assert_int_equal(all_of(index, "a"), 0);
    span_index_close(index);
}

/* Many long texts, which senders choose: each block can be read, and what follows them. */
static void test_large_texts(void **state)
{
    char directory[64];
    int64_t now = NOW;
    struct span_written written;
    struct error error = {0};
    (void)state;
    make_directory(directory);
    struct span_index *index = open_index(directory, &now, 1000000);
    _cleanup_span_batch_ struct span_batch batch = {0};
    add_spans(&batch, 0, 40000, NOW, "shop");
    for (size_t i = 0; i < batch.count; i++) {
        uint32_t texts[4];
        for (int k = 0; k < 4; k++) {
            char text[SPAN_TEXT_MAX + 1];
            int length = snprintf(text, sizeof(text), "%d %zu ", k, i);
            memset(text + length, 'x', sizeof(text) - (size_t)length);
            texts[k] = span_batch_text(&batch, text, SPAN_TEXT_MAX);
        }
        struct span *span = &batch.list[i];
        span->service = texts[0];
        span->name = texts[1];
        span->method = texts[2];
        span->route = texts[3];
    }
    assert_int_equal(span_index_write(index, "a", &batch, 0, NULL, NULL, &written, &error), 0);
    write_spans(index, "a", 50000, 10, NOW, "shop", &written);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(damage_of(index, "a"), 0);
        assert_int_equal(all_of(index, "a"), 40010);
        assert_int_equal(count(index, "a", "shop", 0, INT64_MAX, NULL).spans, 10);
        span_index_close(index);
        index = open_index(directory, &now, 1000000);
        maintain(index); /* comes to an end, though blocks can't become fewer */
    }
    span_index_close(index);
}

/* ---- threads ---- */

struct shared {
    struct span_index *index;
    uint32_t first;
    pthread_t thread;
};

static void *write_many(void *context)
{
    struct shared *shared = context;
    char tenant[2] = {(char)('a' + shared->first / 10000 % 2), 0};
    struct span_written written;
    for (uint32_t i = 0; i < 40; i++)
        if (write_spans(shared->index, tenant, shared->first + i * 25, 25, NOW, "shop", &written))
            abort();
    return NULL;
}

static void test_threads(void **state)
{
    char directory[64];
    int64_t now = NOW;
    struct shared shared[8];
    struct span_stats stats;
    (void)state;
    make_directory(directory);
    struct span_index *index = open_index(directory, &now, 300);
    for (uint32_t i = 0; i < 8; i++) {
        shared[i] = (struct shared){.index = index, .first = i * 10000};
        assert_int_equal(pthread_create(&shared[i].thread, NULL, write_many, &shared[i]), 0);
    }
    for (int i = 0; i < 20; i++) {
        maintain(index);
        assert_true(all_of(index, "a") <= 4000);
    }
    for (uint32_t i = 0; i < 8; i++)
        pthread_join(shared[i].thread, NULL);
    maintain(index);
    assert_int_equal(all_of(index, "a"), 4000);
    assert_int_equal(all_of(index, "b"), 4000);
    span_index_stats(index, &stats);
    assert_int_equal(stats.written, 8000);
    assert_int_equal(stats.damaged, 0);
    span_index_close(index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_times, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_limit, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cut_off, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_delete, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_repeated, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_damaged_block, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_damaged_only, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_damaged_file, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_clock, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_silent_tenant, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_large_texts, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_threads, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
