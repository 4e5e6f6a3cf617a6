// SPDX-License-Identifier: Apache-2.0
// The store of source files: paths as keys, lists, contents by hash, tenants apart, what damage
// does, and what goes first.

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "symbol/sources/sources.h"
#include "unit.h"

#define KEY "abcdef0123456789"
#define OTHER "00ff00ff00ff00ff"

static struct source_store *open_store(const struct source_store_options *options)
{
    struct source_store_options with = options ? *options : (struct source_store_options){0};
    with.directory = "sources";
    return source_store_open(&with);
}

static void makes_paths(void **state)
{
    (void)state;
    static const struct {
        const char *path, *wanted; /* NULL: it is none */
    } cases[] = {
        {"/a/b.c", "/a/b.c"},
        {"/a//b/./c/../d.c", "/a/b/d.c"},
        {"/../../etc/passwd", "/etc/passwd"},
        {"/a/../../b.c", "/b.c"},
        {"a/b.c", "a/b.c"},
        {"./a/../b.c", "b.c"},
        {"a/../../b.c", NULL},
        {"../b.c", NULL},
        {"", NULL},
        {"/", NULL},
        {"/..", NULL},
        {".", NULL},
        {"/a\nb.c", NULL},
        {"/a\x7f.c", NULL},
        {"/with blank/%00/ä.c", "/with blank/%00/ä.c"},
        {"/...", "/..."},
    };
    _cleanup_buffer_ struct buffer path = {0}, longest = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        bool is_path = source_path(cases[i].path, strlen(cases[i].path), &path);
        if (is_path != (cases[i].wanted != NULL))
            fail_msg("%s is taken for %s", cases[i].path, is_path ? path.data : "none");
        if (is_path)
            assert_string_equal(path.data, cases[i].wanted);
    }
    assert_false(source_path("/a\0b", 4, &path));
    for (size_t i = 0; i < SOURCE_PATH_BYTES_MAX; i++)
        buffer_add_char(&longest, i ? 'x' : '/');
    assert_true(source_path(longest.data, longest.length, &path));
    buffer_add_char(&longest, 'x');
    assert_false(source_path(longest.data, longest.length, &path));
}

#define HASH_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HASH_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static void reads_lists(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "x",
        HASH_A,
        HASH_A "  ",
        HASH_A " /a.c",
        HASH_A "\t /a.c",
        HASH_A "  ../a.c",
        "A" HASH_A "  /a.c",
        HASH_A "  /a.c\n\n",
        "\n",
        HASH_A "  /a\r.c\n",
    };
    struct error error = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
        _cleanup_source_list_ struct source_list list = {0};
        if (source_list_read(&list, wrong[i], strlen(wrong[i]), &error) != -EINVAL)
            fail_msg("list %zu is taken", i);
        assert_says(&error, "of the list of sources");
    }
    _cleanup_source_list_ struct source_list list = {0};
    _cleanup_buffer_ struct buffer out = {0};
    static const char good[] = HASH_A "  /b/./c.c\n" HASH_A "  /a.c\n" HASH_B "  /b/c.c";
    assert_int_equal(source_list_read(&list, good, strlen(good), &error), 0);
    source_list_sort(&list);
    source_list_write(&list, &out);
    assert_buffer(&out, HASH_A "  /a.c\n" HASH_B "  /b/c.c\n"); /* the last of two counts */
    assert_string_equal(source_list_find(&list, "/b/c.c")->hash, HASH_B);
    assert_null(source_list_find(&list, "/b"));
}

static void limits_lists(void **state)
{
    (void)state;
    _cleanup_source_list_ struct source_list list = {0};
    _cleanup_buffer_ struct buffer text = {0};
    struct error error = {0};
    for (size_t i = 0; i <= SOURCE_LIST_FILES_MAX; i++)
        buffer_printf(&text, HASH_A "  /%zu\n", i);
    assert_int_equal(source_list_read(&list, text.data, text.length, &error), -E2BIG);
}

/* ---- the store ---- */

static size_t put_list(struct source_store *store, const char *tenant, const char *key,
                       const char *hash, const char *path)
{
    _cleanup_buffer_ struct buffer text = {0}, missing = {0};
    struct error error = {0};
    size_t files;
    buffer_printf(&text, "%s  %s\n", hash, path);
    if (source_store_put_list(store, tenant, key, &text, &missing, &files, &error) < 0)
        fail_msg("%s", error.text);
    if (missing.length)
        assert_memory_equal(missing.data, hash, SOURCE_HASH_DIGITS);
    return missing.length / (SOURCE_HASH_DIGITS + 1);
}

static int put_content(struct source_store *store, const char *tenant, const char *hash,
                       const char *text, struct error *error)
{
    _cleanup_source_upload_ struct source_upload upload = {0};
    int r = source_upload_begin(store, &upload, error);
    for (size_t i = 0; !r && i < strlen(text); i++)
        r = source_upload_write(&upload, text + i, 1, error);
    return r < 0 ? r : source_upload_finish(&upload, tenant, hash, error);
}

static void put_both(struct source_store *store, const char *tenant, const char *key,
                     const char *path, const char *text)
{
    char hash[SOURCE_HASH_DIGITS + 1];
    struct error error = {0};
    assert_true(source_hash(text, strlen(text), hash));
    put_list(store, tenant, key, hash, path);
    assert_int_equal(put_content(store, tenant, hash, text, &error), 0);
}

static void assert_source(struct source_store *store, const char *tenant, const char *key,
                          const char *path, const char *wanted)
{
    _cleanup_buffer_ struct buffer text = {0};
    struct error error = {0};
    int r = source_store_read(store, tenant, key, path, &text, &error);
    if (r != (wanted ? 0 : -ENOENT))
        fail_msg("%s of %s for %s: %d, %s", path, key, tenant, r, error.text);
    if (wanted)
        assert_buffer(&text, wanted);
}

static void keeps_and_gives(void **state)
{
    (void)state;
    struct source_store *store = open_store(NULL);
    struct error error = {0};
    char hash[SOURCE_HASH_DIGITS + 1];
    assert_source(store, "one", KEY, "/a.c", NULL);
    assert_true(source_hash("int a;\n", 7, hash));
    assert_int_equal(put_list(store, "one", KEY, hash, "/src/../a.c"), 1);
    assert_source(store, "one", KEY, "/a.c", NULL); /* named, and not sent */
    assert_int_equal(put_content(store, "one", HASH_A, "int a;\n", &error), -EINVAL);
    assert_says(&error, hash);
    assert_int_equal(put_content(store, "one", "../../x", "int a;\n", &error), -EINVAL);
    assert_int_equal(put_content(store, "one", hash, "int a;\n", &error), 0);
    assert_int_equal(put_list(store, "one", KEY, hash, "/b.c"), 0); /* one content for both */
    assert_source(store, "one", KEY, "/a.c", "int a;\n");
    assert_source(store, "one", KEY, "a.c", "int a;\n"); /* as it is in addresses */
    assert_source(store, "one", KEY, "/x/./..//b.c", "int a;\n");
    assert_source(store, "one", KEY, "/c.c", NULL);
    assert_source(store, "one", OTHER, "/a.c", NULL);
    /* A build's file may change: what was sent last counts. An empty one is a file, too. */
    put_both(store, "one", KEY, "/b.c", "");
    assert_source(store, "one", KEY, "/b.c", "");
    put_both(store, "one", KEY, "relative/c.c", "relative");
    assert_source(store, "one", KEY, "relative/c.c", "relative");
    assert_int_equal(source_store_delete(store, "two", KEY, &error), -ENOENT);
    assert_int_equal(source_store_delete(store, "one", KEY, &error), 0);
    assert_source(store, "one", KEY, "/a.c", NULL);
    source_store_close(store);
}

static void keeps_tenants_apart(void **state)
{
    (void)state;
    struct source_store *store = open_store(NULL);
    struct error error = {0};
    char hash[SOURCE_HASH_DIGITS + 1];
    /* Names that would be other directories, were they taken as they are. */
    static const char *const tenants[] = {"one", "../one", "/", "one/builds", ".."};
    assert_true(source_hash("secret", 6, hash));
    put_both(store, "one", KEY, "/a.c", "secret");
    for (size_t i = 1; i < ARRAY_LENGTH(tenants); i++) {
        assert_source(store, tenants[i], KEY, "/a.c", NULL);
        /* Who knows the hash still has to have the file. */
        assert_int_equal(put_list(store, tenants[i], KEY, hash, "/a.c"), 1);
        assert_source(store, tenants[i], KEY, "/a.c", NULL);
        assert_int_equal(put_content(store, tenants[i], hash, "secret", &error), 0);
        assert_source(store, tenants[i], KEY, "/a.c", "secret");
    }
    assert_int_equal(access("builds", F_OK), -1);
    source_store_close(store);
}

static void opens_no_paths(void **state)
{
    (void)state;
    struct source_store *store = open_store(NULL);
    struct error error = {0};
    _cleanup_buffer_ struct buffer text = {0};
    put_both(store, "one", KEY, "/etc/passwd", "not that one");
    assert_source(store, "one", KEY, "/etc/passwd", "not that one");
    assert_source(store, "one", KEY, "/etc/hostname", NULL);
    assert_source(store, "one", KEY, "../../../../etc/hostname", NULL);
    static const char *const keys[] = {"", "..", "../../etc", "abc", "ABCDEF", "abcd/../x"};
    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
        assert_int_equal(source_store_read(store, "one", keys[i], "/a", &text, &error), -EINVAL);
        assert_int_equal(source_store_delete(store, "one", keys[i], &error), -EINVAL);
    }
    source_store_close(store);
}

/* The only file in a directory. */
static void find_only(const char *pattern, char ret_path[256])
{
    char command[300];
    snprintf(command, sizeof(command), "ls %s", pattern);
    FILE *list = popen(command, "r");
    assert_non_null(list);
    assert_non_null(fgets(ret_path, 256, list));
    ret_path[strcspn(ret_path, "\n")] = '\0';
    pclose(list);
}

static void survives_damage(void **state)
{
    (void)state;
    struct source_store *store = open_store(NULL);
    char hash[SOURCE_HASH_DIGITS + 1], path[256];
    static const char text[] = "a text that is long enough to be cut\n";
    assert_true(source_hash(text, strlen(text), hash));
    for (int i = 0; i < 3; i++) {
        put_both(store, "one", KEY, "/a.c", text);
        assert_source(store, "one", KEY, "/a.c", text);
        find_only("sources/6f6e65/[0-9a-f]?/*", path);
        if (i == 0)
            assert_int_equal(truncate(path, 0), 0);
        else if (i == 1)
            assert_int_equal(truncate(path, 20), 0);
        else
            assert_int_equal(file_write_atomic(path, "nonsense", 8, NULL), 0);
        assert_source(store, "one", KEY, "/a.c", NULL);
        assert_int_equal(access(path, F_OK), -1);
        assert_int_equal(put_list(store, "one", KEY, hash, "/a.c"), 1); /* asked for again */
    }
    find_only("sources/6f6e65/builds/*", path);
    assert_int_equal(file_write_atomic(path, "nonsense", 8, NULL), 0);
    _cleanup_buffer_ struct buffer out = {0};
    assert_int_equal(source_store_read(store, "one", KEY, "/a.c", &out, NULL), -EINVAL);
    put_both(store, "one", KEY, "/a.c", text); /* replaces what can't be read */
    assert_source(store, "one", KEY, "/a.c", text);
    source_store_close(store);
}

static void set_age(const char *pattern, int64_t seconds)
{
    char path[256];
    find_only(pattern, path);
    struct timespec then = {.tv_sec = time(NULL) - seconds};
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){then, then}, 0), 0);
}

static void forgets_the_unused(void **state)
{
    (void)state;
    struct source_store *store =
        open_store(&(struct source_store_options){.unused_ns = 86400000000000ll});
    struct error error = {0};
    char hash[SOURCE_HASH_DIGITS + 1];
    put_both(store, "one", KEY, "/old.c", "old");
    put_both(store, "one", KEY, "/both.c", "both");
    put_both(store, "one", OTHER, "/both.c", "both");
    put_both(store, "two", KEY, "/old.c", "of another tenant");
    set_age("sources/6f6e65/builds/" KEY, 2 * 86400);
    source_store_maintain(store);
    assert_int_equal(source_store_stats(store).builds, 2);
    assert_int_equal(source_store_stats(store).removed, 1);
    assert_source(store, "one", KEY, "/old.c", NULL);
    assert_source(store, "one", OTHER, "/both.c", "both");
    assert_source(store, "two", KEY, "/old.c", "of another tenant");
    /* A content that is new may be named yet; one that isn't goes, whatever the limits. */
    assert_true(source_hash("old", 3, hash));
    assert_int_equal(put_list(store, "two", OTHER, hash, "/x.c"), 1);
    assert_int_equal(put_content(store, "two", hash, "old", &error), 0);
    assert_int_equal(source_store_delete(store, "two", OTHER, &error), 0);
    source_store_maintain(store);
    assert_int_equal(put_list(store, "two", OTHER, hash, "/x.c"), 0);
    assert_int_equal(source_store_delete(store, "two", OTHER, &error), 0);
    char pattern[128];
    snprintf(pattern, sizeof(pattern), "sources/74776f/%.2s/%s", hash, hash + 2);
    set_age(pattern, 7200);
    source_store_maintain(store);
    assert_int_equal(put_list(store, "two", OTHER, hash, "/x.c"), 1);
    /* Use is what keeps: reading notes it. */
    set_age("sources/74776f/builds/" KEY, 80000);
    assert_source(store, "two", KEY, "/old.c", "of another tenant");
    struct stat status;
    assert_int_equal(stat("sources/74776f/builds/" KEY, &status), 0);
    assert_true(time(NULL) - status.st_mtime < 3600);
    source_store_close(store);
}

static void keeps_limits(void **state)
{
    (void)state;
    struct source_store *store = open_store(
        &(struct source_store_options){.file_bytes_max = 100, .total_bytes_max = 256 << 10});
    struct error error = {0};
    _cleanup_buffer_ struct buffer text = {0};
    char key[32], pattern[64], hash[SOURCE_HASH_DIGITS + 1];
    for (int i = 0; i < 101; i++)
        buffer_add_char(&text, 'x');
    assert_true(source_hash(text.data, 100, hash));
    assert_int_equal(put_content(store, "one", hash, buffer_text(&text), &error), -E2BIG);
    assert_says(&error, "symbols.source_file_limit");
    /* Each build takes two blocks: there is room for some thirty. */
    for (int i = 0; i < 60; i++) {
        char content[16];
        snprintf(key, sizeof(key), "abcd%04x", i);
        snprintf(content, sizeof(content), "text %d", i);
        put_both(store, "one", key, "/a.c", content);
        snprintf(pattern, sizeof(pattern), "sources/6f6e65/builds/%s", key);
        set_age(pattern, 3000 - i * 10);
    }
    source_store_maintain(store);
    struct source_store_stats stats = source_store_stats(store);
    assert_true(stats.bytes <= 256 << 10);
    assert_in_range(stats.builds, 10, 59);
    assert_true(stats.removed > 0);
    assert_source(store, "one", "abcd003b", "/a.c", "text 59");
    assert_source(store, "one", "abcd0000", "/a.c", NULL);
    /* What has just come makes no room for what comes. */
    int r = 0;
    for (int i = 0; !r && i < 100; i++) {
        char content[16];
        snprintf(content, sizeof(content), "new %d", i);
        assert_true(source_hash(content, strlen(content), hash));
        r = put_content(store, "one", hash, content, &error);
    }
    assert_int_equal(r, -ENOSPC);
    assert_says(&error, "symbols.source_disk_limit");
    /* Nothing that was on its way in stays. */
    assert_int_equal(system("ls -A sources | grep incoming >/dev/null"), 1 << 8);
    source_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_paths),
        cmocka_unit_test(reads_lists),
        cmocka_unit_test(limits_lists),
        cmocka_unit_test_setup_teardown(keeps_and_gives, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(keeps_tenants_apart, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(opens_no_paths, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(survives_damage, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(forgets_the_unused, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(keeps_limits, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
