// SPDX-License-Identifier: Apache-2.0
// YAML trees and the settings read from them: lines, limits, aliases, quantities, complaints.

#include "base/memory.h"
#include "config/quantity.h"
#include "config/settings.h"
#include "unit.h"

static void read_text(const char *text, struct yaml_tree *tree)
{
    struct error error = {0};
    if (yaml_tree_read("f.yaml", text, strlen(text), tree, &error) < 0)
        fail_msg("%s", error.text);
}

static void reads_trees(void **state)
{
    (void)state;
    _cleanup_yaml_tree_ struct yaml_tree tree = {0};
    read_text("# comment\na: 1\nb:\n  - x\n  - 'null'\n  - ~\nc: {d: \"e f\", g: }\n", &tree);
    const struct yaml_node *root = tree.root, *b = yaml_node_get(root, "b");
    const struct yaml_node *c = yaml_node_get(root, "c");
    assert_int_equal(root->kind, YAML_MAP);
    assert_int_equal(root->count, 3);
    assert_string_equal(yaml_node_get(root, "a")->text, "1");
    assert_false(yaml_node_get(root, "a")->quoted);
    assert_int_equal(b->kind, YAML_LIST);
    assert_int_equal(b->line, 4);
    assert_int_equal(b->count, 3);
    assert_string_equal(b->values[1]->text, "null");
    assert_int_equal(b->values[1]->kind, YAML_SCALAR);
    assert_int_equal(b->values[2]->kind, YAML_NULL);
    assert_int_equal(yaml_node_get(c, "d")->line, 7);
    assert_string_equal(yaml_node_get(c, "d")->text, "e f");
    assert_int_equal(yaml_node_get(c, "g")->kind, YAML_NULL);
    assert_null(yaml_node_get(root, "z"));
    assert_null(yaml_node_get(b, "x"));
}

static void reads_empty_files(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "\n", "# nothing\n", "---\n", "~"};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        _cleanup_yaml_tree_ struct yaml_tree tree = {0};
        read_text(texts[i], &tree);
        assert_int_equal(tree.root->kind, YAML_NULL);
    }
}

static void shares_aliases(void **state)
{
    (void)state;
    _cleanup_yaml_tree_ struct yaml_tree tree = {0};
    read_text("a: &x [1, 2]\nb: *x\nc: &y 7\nd: [*y, *x]\n", &tree);
    const struct yaml_node *a = yaml_node_get(tree.root, "a");
    assert_ptr_equal(yaml_node_get(tree.root, "b"), a);
    assert_ptr_equal(yaml_node_get(tree.root, "d")->values[1], a);
    assert_string_equal(yaml_node_get(tree.root, "d")->values[0]->text, "7");
}

static void refuses(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code;
        const char *says;
    } cases[] = {
        {"a: [1\n", -EBADMSG, "f.yaml:2: Invalid YAML"},
        {"a: 1\n b: 2\n", -EBADMSG, "f.yaml:2:"},
        {"a: 1\nb: 2\na: 3\n", -EBADMSG, "f.yaml:3: duplicate key \"a\", first used in line 1."},
        {"[a]: 1\n", -EBADMSG, "f.yaml:1: A list or map can't be a key."},
        {"a: *x\n", -EBADMSG, "f.yaml:1: An alias refers to an unknown anchor."},
        {"a: &x [*x]\n", -EBADMSG, "An alias refers to an unknown anchor"},
        {"a: 1\n---\nb: 2\n", -ENOTSUP, "f.yaml:2: The file contains more than one document"},
        {"a: !!int 1\n", -ENOTSUP, "Tags are not supported"},
        {"a: !x {}\n", -ENOTSUP, "Tags are not supported"},
        {"a: &x {b: 1}\nc: {<<: *x}\n", -ENOTSUP, "f.yaml:2: Merge keys"},
        {"a: \"\\0\"\n", -EBADMSG, "NUL"},
        {"\x01", -EBADMSG, "f.yaml:1: Invalid YAML"},
        {"a: \xff", -EBADMSG, "Invalid YAML"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct yaml_tree tree = {0};
        struct error error = {0};
        int result = yaml_tree_read("f.yaml", cases[i].text, strlen(cases[i].text), &tree, &error);
        if (result != cases[i].code)
            fail_msg("%s: %d, %s", cases[i].text, result, error.text);
        assert_says(&error, cases[i].says);
        assert_null(tree.root);
    }
}

static void has_limits(void **state)
{
    (void)state;
    struct yaml_tree tree = {0};
    struct error error = {0};
    _cleanup_buffer_ struct buffer text = {0};
    for (int i = 0; i <= YAML_DEPTH_MAX; i++)
        buffer_add_char(&text, '[');
    assert_int_equal(yaml_tree_read("f", text.data, text.length, &tree, &error), -E2BIG);
    assert_says(&error, "nested too deeply");
    /* Nine words, a billion laughs. */
    text.length = 0;
    buffer_add_text(&text, "a: &a [x,x,x,x,x,x,x,x,x,x]\n");
    for (char c = 'b'; c <= 'k'; c++) {
        buffer_printf(&text, "%c: &%c [", c, c);
        for (int i = 0; i < 10; i++)
            buffer_printf(&text, "%s*%c", i ? "," : "", c - 1);
        buffer_add_text(&text, "]\n");
    }
    assert_int_equal(yaml_tree_read("f", text.data, text.length, &tree, &error), -E2BIG);
    assert_says(&error, "too many entries");
    text.length = 0;
    for (size_t i = 0; i <= YAML_BYTES_MAX; i++)
        buffer_add_char(&text, ' ');
    assert_int_equal(yaml_tree_read("f", text.data, text.length, &tree, &error), -E2BIG);
    assert_says(&error, "larger than");
    assert_int_equal(yaml_tree_read_file("/nonexistent/x.yaml", &tree, &error), -ENOENT);
    assert_says(&error, "/nonexistent/x.yaml");
}

/* At every length, and with each byte changed: an answer, never a crash. */
static void survives_damage(void **state)
{
    (void)state;
    static const char text[] = "a: &x {b: 'c', \"d\": [1, ~, *y]}\n# e\nf:\n- |\n  g\n- *x\n";
    for (size_t i = 0; i < sizeof(text); i++)
        for (int change = 0; change < 9; change++) {
            _cleanup_free_ char *copy = memory_alloc(sizeof(text));
            memcpy(copy, text, sizeof(text));
            size_t length = change < 8 ? sizeof(text) - 1 : i;
            if (change < 8)
                copy[i] ^= (char)(1 << change);
            struct yaml_tree tree = {0};
            struct error error = {0};
            if (yaml_tree_read("f", copy, length, &tree, &error) == 0)
                yaml_tree_release(&tree);
            else
                assert_true(error.text[0] != '\0');
        }
}

static void reads_durations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ns; /* -1: none */
    } cases[] = {
        {"0", 0},
        {"0s", 0},
        {"10s", 10000000000},
        {"250ms", 250000000},
        {"1h30m", 5400000000000},
        {"1d", 86400000000000},
        {"2w", 1209600000000000},
        {"1y", 31536000000000000},
        {"5us", 5000},
        {"7ns", 7},
        {"1m500ms", 60500000000},
        {"", -1},
        {"10", -1},
        {"s", -1},
        {"10 s", -1},
        {"-1s", -1},
        {"1.5s", -1},
        {"1s1m", -1},
        {"1s1s", -1},
        {"1x", -1},
        {"1sx", -1},
        {"300y", -1},
        {"99999999999999999999s", -1},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        int64_t ns = -1;
        bool good = quantity_duration(cases[i].text, &ns);
        if (good != (cases[i].ns >= 0) || ns != cases[i].ns)
            fail_msg("%s: %d %ld", cases[i].text, good, (long)ns);
    }
}

static void reads_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes; /* 1: none */
    } cases[] = {
        {"0", 0},
        {"4096", 4096},
        {"4096B", 4096},
        {"1K", 1024},
        {"1k", 1024},
        {"256MiB", 256 << 20},
        {"256Mi", 256 << 20},
        {"2G", 2147483648},
        {"10MB", 10000000},
        {"3 GiB", 3221225472},
        {"1TiB", 1099511627776},
        {"", 1},
        {"M", 1},
        {"1X", 1},
        {"1MiBx", 1},
        {"-1", 1},
        {"1.5G", 1},
        {"9999999PiB", 1},
        {"1  G", 1},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        uint64_t bytes = 1;
        bool good = quantity_size(cases[i].text, &bytes);
        if (good != (cases[i].bytes != 1) || bytes != cases[i].bytes)
            fail_msg("%s: %d %lu", cases[i].text, good, (unsigned long)bytes);
    }
}

static void reads_settings(void **state)
{
    (void)state;
    _cleanup_yaml_tree_ struct yaml_tree tree = {0};
    read_text("text: x\nflag: On\nnumber: 7\nshare: 0.5\nevery: 5m\nmemory: 1MiB\nmode: FAST\n"
              "list: [a, b]\nmap: {k: v}\nempty:\n",
              &tree);
    struct problems problems = {.file = "f.yaml"};
    struct settings settings;
    const char *text = "default", *empty = "default";
    bool flag = false;
    uint64_t number = 0, memory = 0, missing = 42;
    double share = 0;
    int64_t every_ns = 0;
    unsigned mode = 0;
    static const char *const modes[] = {"slow", "fast"};
    settings_open(&settings, &problems, tree.root, "the file");
    assert_true(settings_string(&settings, "text", &text));
    assert_true(settings_bool(&settings, "flag", &flag));
    assert_true(settings_u64(&settings, "number", 0, 7, &number));
    assert_true(settings_double(&settings, "share", 0, 1, &share));
    assert_true(settings_duration(&settings, "every", 1, INT64_MAX, &every_ns));
    assert_true(settings_size(&settings, "memory", 1, UINT64_MAX, &memory));
    assert_true(settings_choice(&settings, "mode", modes, 2, &mode));
    assert_int_equal(settings_strings(&settings, "list")->count, 2);
    assert_non_null(settings_map(&settings, "map"));
    assert_false(settings_string(&settings, "empty", &empty));
    assert_false(settings_u64(&settings, "missing", 0, 100, &missing));
    settings_close(&settings);
    assert_int_equal(problems.count, 0);
    assert_string_equal(text, "x");
    assert_string_equal(empty, "default");
    assert_true(flag);
    assert_int_equal(number, 7);
    assert_true(share == 0.5);
    assert_int_equal(every_ns, 300000000000);
    assert_int_equal(memory, 1 << 20);
    assert_int_equal(mode, 1);
    assert_int_equal(missing, 42);
    settings_open(&settings, &problems, NULL, "nothing");
    assert_false(settings_string(&settings, "text", &text));
    settings_close(&settings);
    assert_int_equal(problems.count, 0);
    problems_release(&problems);
}

static void tells_all_problems(void **state)
{
    (void)state;
    _cleanup_yaml_tree_ struct yaml_tree tree = {0};
    read_text("text: [x]\nflag: 2\nnumber: 8\nshare: 2\nevery: 5\nmemory: 1XB\nmode: x\nlist: a\n"
              "map: []\ntexts: [a, {}]\nlsit: 1\nwholly_unknown: \"\\e[31m\"\nless: 1s\nmore: x\n",
              &tree);
    struct problems problems = {.file = "f.yaml"};
    struct settings settings;
    const char *text;
    bool flag;
    uint64_t number;
    double share;
    int64_t ns;
    unsigned mode;
    static const char *const modes[] = {"slow", "fast"};
    settings_open(&settings, &problems, tree.root, "the file");
    assert_false(settings_string(&settings, "text", &text));
    assert_false(settings_bool(&settings, "flag", &flag));
    assert_false(settings_u64(&settings, "number", 0, 7, &number));
    assert_false(settings_double(&settings, "share", 0, 1, &share));
    assert_false(settings_duration(&settings, "every", 1, INT64_MAX, &ns));
    assert_false(settings_size(&settings, "memory", 1, UINT64_MAX, &number));
    assert_false(settings_choice(&settings, "mode", modes, 2, &mode));
    assert_null(settings_list(&settings, "list"));
    assert_null(settings_map(&settings, "map"));
    assert_null(settings_strings(&settings, "texts"));
    assert_false(settings_duration(&settings, "less", 2000000000, 3000000000, &ns));
    assert_false(settings_u64(&settings, "more", 1, UINT64_MAX, &number));
    settings_close(&settings);
    assert_string_equal(
        buffer_text(&problems.text),
        "f.yaml:1: \"text\" of the file must be a text.\n"
        "f.yaml:2: \"flag\" of the file must be true or false, not \"2\".\n"
        "f.yaml:3: \"number\" of the file must be a whole number from 0 to 7, not \"8\".\n"
        "f.yaml:4: \"share\" of the file must be a number from 0 to 1, not \"2\".\n"
        "f.yaml:5: \"every\" of the file must be a duration like 10s, 5m or 1h30m, not \"5\".\n"
        "f.yaml:6: \"memory\" of the file must be a size like 64KiB, 256MiB or 2GiB, not "
        "\"1XB\".\n"
        "f.yaml:7: \"mode\" of the file must be one of slow, fast, not \"x\".\n"
        "f.yaml:8: \"list\" of the file must be a list.\n"
        "f.yaml:9: \"map\" of the file must be a map of keys and values.\n"
        "f.yaml:10: \"texts\" of the file must be a list of strings: entry 2 is not a string.\n"
        "f.yaml:13: \"less\" of the file must be a duration from 2 s to 3 s, not \"1s\".\n"
        "f.yaml:14: \"more\" of the file must be a whole number, at least 1, not \"x\".\n"
        "f.yaml:11: the file has no key \"lsit\": did you mean \"list\"?\n"
        "f.yaml:12: the file has no key \"wholly_unknown\".\n");
    assert_int_equal(problems.count, 14);
    /* No more than a screen or two of them, and nothing that drives the terminal. */
    for (int i = 0; i < 1000; i++)
        problems_add(&problems, NULL, "\x1b[31m");
    assert_int_equal(problems.count, 1014);
    assert_null(strchr(buffer_text(&problems.text), '\x1b'));
    assert_true(problems.text.length < 10000);
    problems_release(&problems);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_trees),     cmocka_unit_test(reads_empty_files),
        cmocka_unit_test(shares_aliases),  cmocka_unit_test(refuses),
        cmocka_unit_test(has_limits),      cmocka_unit_test(survives_damage),
        cmocka_unit_test(reads_durations), cmocka_unit_test(reads_sizes),
        cmocka_unit_test(reads_settings),  cmocka_unit_test(tells_all_problems),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
