// SPDX-License-Identifier: Apache-2.0
// The symbol store: keys, what is taken and what is refused, what goes first, and what a crash or
// damage leaves. The binary that is kept is this very program.

#include <fcntl.h>
#include <ftw.h>
#include <link.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "base/limits/budget.h"
#include "elf/file.h"
#include "symbol/store/store.h"
#include "unit.h"

static struct buffer program;
static char own_key[SYMBOL_KEY_BYTES];
static int content_files;

static inline __attribute__((always_inline)) int inlined_into_probe(volatile int *n)
{
    return *n + 1;
}
__attribute__((noinline)) static int probe(volatile int *n)
{
    return inlined_into_probe(n);
}

static int read_ourselves(void **state)
{
    (void)state;
    struct symbol_identity identity;
    struct error error = {0};
    volatile int n = 1;
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    if (probe(&n) != 2 || file_read("/proc/self/exe", 1u << 30, &program, &error) < 0 ||
        elf_open("/proc/self/exe", &file, &error) < 0 ||
        symbol_identify(&file, &identity, &error) < 0)
        return -1;
    strcpy(own_key, identity.key);
    return 0;
}

static int release(void **state)
{
    (void)state;
    buffer_release(&program);
    return 0;
}

static struct symbol_store *open_store(const struct symbol_store_options *options)
{
    struct symbol_store_options with = options ? *options : (struct symbol_store_options){0};
    struct symbol_store *store = NULL;
    struct error error = {0};
    with.directory = "symbols";
    assert_int_equal(symbol_store_open(&with, &store, &error), 0);
    return store;
}

#define TENANT "one"
#define TENANT_FOLDER "6f6e65"

static int put_for(struct symbol_store *store, const char *tenant, const void *bytes, size_t length,
                   const char *expected, struct symbol_stored *ret_stored, struct error *error)
{
    _cleanup_symbol_upload_ struct symbol_upload upload = {0};
    int r = symbol_upload_begin(store, &upload, error);
    if (!r)
        r = symbol_upload_write(&upload, bytes, length, error);
    return r < 0
               ? r
               : symbol_upload_finish(&upload, tenant, expected, "folder/prog", ret_stored, error);
}

static int put(struct symbol_store *store, const void *bytes, size_t length, const char *expected,
               struct symbol_stored *ret_stored, struct error *error)
{
    return put_for(store, TENANT, bytes, length, expected, ret_stored, error);
}

static int count_entry(void *context, const struct symbol_entry *entry)
{
    (void)entry;
    ++*(int *)context;
    return 0;
}

static int builds_of(struct symbol_store *store, const char *tenant)
{
    int count = 0;
    assert_int_equal(symbol_store_list(store, tenant, count_entry, &count, NULL), 0);
    return count;
}

static int builds(struct symbol_store *store)
{
    return builds_of(store, TENANT);
}

static uint64_t own_offset(const void *function)
{
    char line[512];
    uint64_t result = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps)) {
        unsigned long start, end, offset;
        if (sscanf(line, "%lx-%lx %*4s %lx", &start, &end, &offset) == 3 &&
            (uintptr_t)function >= start && (uintptr_t)function < end)
            result = (uintptr_t)function - start + offset;
    }
    fclose(maps);
    return result;
}

static void index_path(struct buffer *path, const char *name)
{
    path->length = 0;
    buffer_printf(path, "symbols/builds/" TENANT_FOLDER "/%.2s/%s/%s", own_key, own_key + 2, name);
}

static void makes_keys(void **state)
{
    (void)state;
    char key[SYMBOL_KEY_BYTES], longest[2 * SYMBOL_KEY_BYTES];
    assert_true(symbol_key("AB01cd", key));
    assert_string_equal(key, "ab01cd");
    assert_true(symbol_key("aX/b", key));
    assert_string_equal(key, "61582f62");
    assert_true(symbol_key("abc", key)); /* an odd number of digits is a text */
    assert_string_equal(key, "616263");
    assert_false(symbol_key("", key));
    assert_false(symbol_key("x", key));
    memset(longest, 'a', sizeof(longest));
    longest[SYMBOL_KEY_BYTES - 1] = '\0';
    assert_true(symbol_key(longest, key));
    longest[SYMBOL_KEY_BYTES - 1] = 'a';
    longest[SYMBOL_KEY_BYTES + 1] = '\0';
    assert_false(symbol_key(longest, key));
    longest[128] = '/'; /* as a text it is twice as long */
    longest[129] = '\0';
    assert_false(symbol_key(longest, key));
}

static void takes_and_names(void **state)
{
    (void)state;
    struct symbol_store *store = open_store(NULL);
    struct symbol_stored stored = {0};
    struct symbol_entry entry;
    struct symbol_frame frames[SYMBOL_FRAMES_MAX];
    struct error error = {0};
    assert_null(symbol_store_source(store, TENANT, own_key));
    assert_int_equal(put(store, program.data, program.length, own_key, &stored, &error), 0);
    assert_true(stored.stored);
    assert_string_equal(stored.key, own_key);
    assert_int_equal(stored.quality, SYMBOL_INDEX_INLINES);
    assert_true(symbol_store_find(store, TENANT, own_key, &entry));
    assert_string_equal(entry.name, "prog");
    assert_int_equal(entry.file_bytes[SYMBOL_EXECUTABLE], program.length);
    assert_int_equal(entry.file_bytes[SYMBOL_DEBUGINFO], 0);

    /* The same again is no better. */
    assert_int_equal(put(store, program.data, program.length, NULL, &stored, &error), 0);
    assert_false(stored.stored);
    assert_int_equal(builds(store), 1);
    assert_int_equal(symbol_store_stats(store).builds, 1);
    assert_true(symbol_store_stats(store).bytes > program.length);
    assert_int_equal(symbol_store_stats(store).kept_out, 1);

    /* What is open stays so, whatever becomes of the build. */
    struct symbol_source *source = symbol_store_source(store, TENANT, own_key);
    assert_non_null(source);
    assert_int_equal(symbol_store_delete(store, TENANT, own_key, &error), 0);
    assert_int_equal(symbol_store_stats(store).builds, 0);
    assert_int_equal(symbol_store_delete(store, TENANT, own_key, &error), -ENOENT);
    assert_null(symbol_store_source(store, TENANT, own_key));
    uint64_t offset = own_offset((const void *)(uintptr_t)probe);
    size_t count = 0;
    for (uint64_t at = offset; count < 2 && at < offset + 64; at++)
        count = symbol_source_look_up(source, at, 0, 0, frames, SYMBOL_FRAMES_MAX);
    assert_int_equal(count, 2);
    assert_string_equal(frames[0].name, "inlined_into_probe");
    assert_string_equal(frames[1].name, "probe");
    assert_int_equal(symbol_source_look_up(source, UINT64_MAX, 0, 0, frames, 8), 0);
    /* The address that the linker gave finds the same. */
    uint64_t address = (uintptr_t)probe - _r_debug.r_map->l_addr;
    count = 0;
    for (uint64_t at = address; count < 2 && at < address + 64; at++)
        count = symbol_source_look_up(source, at, SYMBOL_BY_ADDRESS, 0, frames, SYMBOL_FRAMES_MAX);
    assert_int_equal(count, 2);
    assert_string_equal(frames[0].name, "inlined_into_probe");
    assert_int_equal(symbol_source_look_up(source, UINT64_MAX, SYMBOL_BY_ADDRESS, 0, frames, 8), 0);
    symbol_source_release(store, source);
    symbol_store_close(store);
}

static void refuses(void **state)
{
    (void)state;
    struct symbol_store *store =
        open_store(&(struct symbol_store_options){.file_bytes_max = program.length});
    struct symbol_stored stored = {0};
    struct error error = {0};
    assert_int_equal(put(store, program.data, program.length, "abcdef00", &stored, &error),
                     -EINVAL);
    assert_says(&error, "abcdef00");
    assert_says(&error, own_key);
    assert_true(put(store, "nonsense", 8, NULL, &stored, &error) < 0);
    assert_says(&error, "not a binary or debug file");
    assert_true(put(store, "", 0, NULL, &stored, &error) < 0);
    buffer_reserve(&program, 1);
    assert_int_equal(put(store, program.data, program.length + 1, NULL, &stored, &error), -E2BIG);
    assert_says(&error, "symbols.file_limit");
    assert_int_equal(builds(store), 0);
    assert_int_equal(rmdir("symbols/incoming"), 0); /* nothing is left there */
    symbol_store_close(store);
}

/* Cut anywhere and changed anywhere: an answer or a sentence, and never more than there was. */
static void survives_damage(void **state)
{
    (void)state;
    struct symbol_store *store = open_store(NULL);
    struct symbol_stored stored;
    struct error error = {0};
    char *copy = memory_alloc(program.length);
    for (size_t i = 0; i < 16; i++) {
        size_t length = program.length / 16 * i;
        int r = put(store, program.data, length, NULL, &stored, &error);
        assert_true(r <= 0 && (r == 0 || error.text[0]));
    }
    for (size_t i = 0; i < 16; i++) {
        memcpy(copy, program.data, program.length);
        for (size_t at = 4 + i; at < program.length; at += 997 + 64 * i)
            copy[at] = (char)(copy[at] ^ (1 << (i % 8)));
        int r = put(store, copy, program.length, own_key, &stored, &error);
        assert_true(r <= 0 && (r == 0 || error.text[0]));
    }
    free(copy);
    /* And the real one comes through, whatever was taken of those. */
    assert_int_equal(put(store, program.data, program.length, own_key, &stored, &error), 0);
    symbol_store_close(store);
}

static void keeps_limits(void **state)
{
    (void)state;
    struct symbol_stored stored;
    struct error error = {0};
    _cleanup_buffer_ struct buffer path = {0};
    struct symbol_store *store =
        open_store(&(struct symbol_store_options){.unused_ns = 3600000000000ll});
    assert_int_equal(put(store, program.data, program.length, NULL, &stored, &error), 0);
    symbol_store_maintain(store);
    assert_int_equal(builds(store), 1);
    index_path(&path, "used");
    struct timespec long_ago[2] = {{.tv_sec = time(NULL) - 4000}, {.tv_sec = time(NULL) - 4000}};
    assert_int_equal(utimensat(AT_FDCWD, buffer_text(&path), long_ago, 0), 0);
    symbol_source_release(store, symbol_store_source(store, TENANT, own_key)); /* that is a use */
    symbol_store_maintain(store);
    assert_int_equal(builds(store), 1);
    assert_int_equal(utimensat(AT_FDCWD, buffer_text(&path), long_ago, 0), 0);
    symbol_store_maintain(store);
    assert_int_equal(builds(store), 0);
    assert_int_equal(symbol_store_stats(store).removed, 1);
    symbol_store_close(store);

    store = open_store(&(struct symbol_store_options){.total_bytes_max = program.length / 2});
    assert_int_equal(put(store, program.data, program.length, NULL, &stored, &error), -ENOSPC);
    assert_says(&error, "symbols.disk_limit");
    assert_int_equal(builds(store), 0);
    symbol_store_close(store);
}

static void keeps_to_its_memory(void **state)
{
    (void)state;
    struct symbol_stored stored;
    struct error error = {0};
    struct budget memory;
    budget_init(&memory, 64u << 20);
    struct symbol_store *store =
        open_store(&(struct symbol_store_options){.mapped_bytes_max = 4096, .memory = &memory});
    assert_int_equal(put(store, program.data, program.length, NULL, &stored, &error), 0);
    assert_true(budget_stats(&memory).peak_bytes > program.length / 8);
    assert_true(put(store, "no file", 7, NULL, &stored, &error) < 0);
    assert_int_equal(symbol_store_index_path(store, TENANT, "/proc/self/exe", own_key, &error), 0);
    assert_int_equal(budget_stats(&memory).used_bytes, 0);

    /* In use, an index may be as large as it is; then it is closed. */
    struct symbol_source *one = symbol_store_source(store, TENANT, own_key);
    struct symbol_source *same = symbol_store_source(store, TENANT, own_key);
    assert_true(one && one == same);
    assert_int_equal(symbol_store_stats(store).open, 1);
    assert_true(symbol_store_stats(store).mapped_bytes > 4096);
    symbol_source_release(store, one);
    assert_int_equal(symbol_store_stats(store).open, 1);
    symbol_source_release(store, same);
    assert_int_equal(symbol_store_stats(store).open, 0);
    assert_int_equal(symbol_store_stats(store).mapped_bytes, 0);
    symbol_store_close(store);

    store = open_store(&(struct symbol_store_options){.mapped_bytes_max = 1u << 30});
    symbol_source_release(store, symbol_store_source(store, TENANT, own_key));
    assert_int_equal(symbol_store_stats(store).open, 1);
    symbol_store_close(store);
    budget_release(&memory);
}

static void mends_what_a_crash_leaves(void **state)
{
    (void)state;
    struct symbol_stored stored;
    struct symbol_entry entry;
    struct error error = {0};
    _cleanup_buffer_ struct buffer path = {0};
    struct symbol_store *store = open_store(NULL);
    assert_int_equal(put(store, program.data, program.length, NULL, &stored, &error), 0);
    symbol_store_close(store);
    index_path(&path, "index");
    for (int i = 0; i < 3; i++) {
        if (i == 0)
            assert_int_equal(truncate(buffer_text(&path), 100), 0);
        else if (i == 1)
            assert_int_equal(unlink(buffer_text(&path)), 0);
        else
            assert_int_equal(file_write_atomic(buffer_text(&path), "nonsense", 8, &error), 0);
        store = open_store(NULL);
        assert_null(symbol_store_source(store, TENANT, own_key));
        symbol_store_maintain(store);
        assert_true(symbol_store_find(store, TENANT, own_key, &entry));
        assert_int_equal(entry.quality, SYMBOL_INDEX_INLINES);
        symbol_store_close(store);
    }
    /* Without the file there is nothing to make it of. */
    assert_int_equal(truncate(buffer_text(&path), 100), 0);
    index_path(&path, "executable");
    assert_int_equal(unlink(buffer_text(&path)), 0);
    int fd = open("symbols/incoming/left", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    store = open_store(NULL);
    assert_int_equal(access("symbols/incoming/left", F_OK), -1);
    symbol_store_maintain(store);
    index_path(&path, "");
    assert_int_equal(access(buffer_text(&path), F_OK), -1);
    symbol_store_close(store);
}

/* Files on disk below the contents that tenants share. */
static int count_file(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)path, (void)status, (void)place;
    content_files += kind == FTW_F;
    return 0;
}

static int contents(void)
{
    content_files = 0;
    assert_int_equal(nftw("symbols/contents", count_file, 8, FTW_PHYS), 0);
    return content_files;
}

/* This program as another build: its ID is another one. */
static char *another_build(uint8_t number, char ret_key[SYMBOL_KEY_BYTES])
{
    size_t length = strlen(own_key) / 2;
    uint8_t id[SYMBOL_KEY_BYTES];
    char *copy = memory_alloc(program.length);
    memcpy(copy, program.data, program.length);
    for (size_t i = 0; i < length; i++) {
        const char digits[] = {own_key[2 * i], own_key[2 * i + 1], '\0'};
        id[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    char *at = memmem(copy, program.length, id, length);
    assert_non_null(at);
    memset(at, number, 4);
    strcpy(ret_key, own_key);
    for (size_t i = 0; i < 4; i++)
        snprintf(ret_key + 2 * i, 3, "%02x", number);
    ret_key[8] = own_key[8];
    return copy;
}

static void keeps_tenants_apart(void **state)
{
    (void)state;
    struct symbol_store *store = open_store(NULL);
    struct symbol_stored stored = {0};
    struct symbol_entry entry;
    struct error error = {0};
    uint64_t bytes;
    assert_int_equal(put_for(store, "one", program.data, program.length, NULL, &stored, &error), 0);
    assert_false(symbol_store_find(store, "two", own_key, &entry));
    assert_int_equal(builds_of(store, "two"), 0);
    assert_null(symbol_store_source(store, "two", own_key));
    assert_int_equal(symbol_store_open_file(store, "two", own_key, SYMBOL_EXECUTABLE, &bytes), -1);
    assert_int_equal(symbol_store_delete(store, "two", own_key, &error), -ENOENT);
    assert_int_equal(builds_of(store, "one"), 1);

    /* The same file of another tenant is another build with the same bytes on disk. */
    uint64_t before = symbol_store_stats(store).bytes;
    assert_int_equal(contents(), 2);
    assert_int_equal(put_for(store, "two", program.data, program.length, NULL, &stored, &error), 0);
    assert_true(stored.stored);
    assert_int_equal(contents(), 2);
    symbol_store_maintain(store);
    assert_int_equal(symbol_store_stats(store).builds, 2);
    assert_true(symbol_store_stats(store).bytes < before + program.length / 2);
    struct symbol_source *source = symbol_store_source(store, "two", own_key);
    assert_non_null(source);
    symbol_source_release(store, source);

    /* Each loses its own alone, and the bytes go with the last. */
    assert_int_equal(symbol_store_delete(store, "one", own_key, &error), 0);
    assert_int_equal(builds_of(store, "one"), 0);
    assert_null(symbol_store_source(store, "one", own_key));
    assert_true(symbol_store_find(store, "two", own_key, &entry));
    assert_int_equal(entry.file_bytes[SYMBOL_EXECUTABLE], program.length);
    assert_int_equal(contents(), 2);
    assert_int_equal(symbol_store_delete(store, "two", own_key, &error), 0);
    assert_int_equal(contents(), 0);
    assert_int_equal(symbol_store_stats(store).bytes, 0);
    symbol_store_close(store);
}

/* A content that was damaged on disk is not shared with whoever sends the same. */
static void replaces_damaged_contents(void **state)
{
    (void)state;
    struct symbol_store *store = open_store(NULL);
    struct symbol_stored stored = {0};
    struct error error = {0};
    _cleanup_buffer_ struct buffer path = {0}, read = {0};
    assert_int_equal(put_for(store, "two", program.data, program.length, NULL, &stored, &error), 0);
    assert_int_equal(put(store, program.data, program.length, NULL, &stored, &error), 0);
    index_path(&path, "executable");
    assert_int_equal(truncate(buffer_text(&path), 100), 0);
    assert_int_equal(symbol_store_delete(store, TENANT, own_key, &error), 0);
    assert_int_equal(put(store, program.data, program.length, NULL, &stored, &error), 0);
    assert_int_equal(file_read(buffer_text(&path), program.length, &read, &error), 0);
    assert_int_equal(read.length, program.length);
    assert_memory_equal(read.data, program.data, program.length);
    symbol_store_close(store);
}

/* What a tenant sends takes the room of what it has, not of what others have. */
static void makes_room_fairly(void **state)
{
    (void)state;
    struct symbol_stored stored;
    struct error error = {0};
    char key[SYMBOL_KEY_BYTES];
    struct symbol_store *store = open_store(NULL);
    assert_int_equal(put_for(store, "small", program.data, program.length, NULL, &stored, &error),
                     0);
    uint64_t each = symbol_store_stats(store).bytes;
    symbol_store_close(store);
    store = open_store(&(struct symbol_store_options){.total_bytes_max = 3 * each + each / 2});
    for (uint8_t i = 1; i <= 5; i++) {
        _cleanup_free_ char *copy = another_build(i, key);
        assert_int_equal(put_for(store, "large", copy, program.length, key, &stored, &error), 0);
    }
    assert_int_equal(builds_of(store, "small"), 1);
    assert_int_equal(builds_of(store, "large"), 2);
    assert_int_equal(symbol_store_stats(store).removed, 3);
    assert_true(symbol_store_stats(store).bytes <= 3 * each + each / 2);
    symbol_store_close(store);
}

static void counts_packages(void **state)
{
    (void)state;
    enum { PACKAGE_BYTES = 1 << 20 };
    struct symbol_stored stored;
    struct error error = {0};
    _cleanup_buffer_ struct buffer path = {0};
    _cleanup_free_ char *package = memory_alloc(PACKAGE_BYTES);
    memset(package, 'p', PACKAGE_BYTES);
    struct symbol_store *store = open_store(NULL);
    assert_int_equal(put(store, program.data, program.length, NULL, &stored, &error), 0);
    symbol_store_maintain(store);
    uint64_t before = symbol_store_stats(store).bytes;
    index_path(&path, "package");
    assert_int_equal(file_write_atomic(buffer_text(&path), package, PACKAGE_BYTES, &error), 0);
    symbol_store_maintain(store);
    assert_true(symbol_store_stats(store).bytes >= before + PACKAGE_BYTES);
    symbol_store_close(store);
    store = open_store(&(struct symbol_store_options){.total_bytes_max = before + 1000});
    symbol_store_maintain(store);
    assert_int_equal(builds(store), 0);
    symbol_store_close(store);
}

static void takes_this_machines_files(void **state)
{
    (void)state;
    struct symbol_store *store = open_store(NULL);
    struct symbol_entry entry;
    struct error error = {0};
    assert_int_equal(symbol_store_index_path(store, TENANT, "/proc/self/exe", "abcdef00", &error),
                     -EINVAL);
    assert_says(&error, own_key);
    assert_true(symbol_store_index_path(store, TENANT, "/no/such/file", own_key, &error) < 0);
    assert_int_equal(builds(store), 0);
    assert_int_equal(symbol_store_index_path(store, TENANT, "/proc/self/exe", own_key, &error), 0);
    assert_true(symbol_store_find(store, TENANT, own_key, &entry));
    assert_int_equal(entry.file_bytes[SYMBOL_EXECUTABLE], 0);
    assert_int_equal(entry.quality, SYMBOL_INDEX_INLINES);
    symbol_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_keys),
        cmocka_unit_test_setup_teardown(takes_and_names, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(refuses, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(survives_damage, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(keeps_limits, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(keeps_to_its_memory, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(mends_what_a_crash_leaves, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(keeps_tenants_apart, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(replaces_damaged_contents, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(makes_room_fairly, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(counts_packages, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(takes_this_machines_files, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, read_ourselves, release);
}
