// SPDX-License-Identifier: Apache-2.0
// Links from lines to a repository: which templates are taken, which services they are for, and
// which commits can get into them.

#include "server/symbols/api/source_links.h"
#include "unit.h"

static void checks_templates(void **state)
{
    (void)state;
    static const char *const good[] = {
        "https://git.example/a/blob/{commit}/{path}#L{line}",
        "http://127.0.0.1:3000/{path}",
        "https://git.example/?file={path}&line={line}&rev={commit}",
    };
    static const char *const wrong[] = {
        "",
        "git.example/{path}",
        "javascript:alert('{path}')",
        "JavaScript://git.example/{path}",
        "data:text/html,{path}",
        "file:///{path}",
        "ftp://git.example/{path}",
        "https://{commit}/{path}",
        "https://git.{commit}.example/{path}",
        "https://user@git.example/{path}",
        "https:///{path}",
        "https://git.example",
        "https://git.example?{path}",
        "https://git.example/",
        "https://git.example/{commit}",
        "https://git.example/{path}{other}",
        "https://git.example/{path",
        "https://git.example/{path}}",
        "https://git.example/\"{path}",
        "https://git.example/{path}\n",
        "https://git.example/a b/{path}",
        "https://git.example/<{path}",
        "https://git.example/\\{path}",
        " https://git.example/{path}",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(good); i++)
        if (source_link_problem(good[i]))
            fail_msg("%s %s", good[i], source_link_problem(good[i]));
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++)
        if (!source_link_problem(wrong[i]))
            fail_msg("%s is taken", wrong[i]);
    _cleanup_buffer_ struct buffer longest = {0};
    buffer_add_text(&longest, good[1]);
    for (int i = 0; i < 3000; i++)
        buffer_add_char(&longest, 'x');
    assert_non_null(source_link_problem(buffer_text(&longest)));
}

static void fills_templates(void **state)
{
    (void)state;
    struct source_link link = {.url = "https://h/{commit}/{path}?{commit}#L{line}"};
    _cleanup_buffer_ struct buffer out = {0};
    assert_true(source_link_fill(&link, "v1.2+x/y", &out));
    assert_buffer(&out, "https://h/v1.2%2Bx/y/{path}?v1.2%2Bx/y#L{line}");
    out.length = 0;
    assert_false(source_link_fill(&link, NULL, &out));
    link.url = "https://h/{path}";
    out.length = 0;
    assert_true(source_link_fill(&link, NULL, &out));
    assert_buffer(&out, "https://h/{path}");
}

static void chooses_commits(void **state)
{
    (void)state;
    struct source_link link = {.url = "https://h/{commit}/{path}"};
    static const char *const wrong[] = {"",    "a b",    "../x", "a/../b", "/a", "a?b",
                                        "a#b", "{path}", "a%2e", "\"",     "<"};
    _cleanup_labels_ struct labels labels = {0};
    assert_null(source_link_commit(&link, &labels));
    labels_set(&labels, "version", "v2");
    assert_string_equal(source_link_commit(&link, &labels), "v2");
    labels_set(&labels, "commit", "abc123");
    assert_string_equal(source_link_commit(&link, &labels), "abc123");
    link.commit = "main";
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
        labels_set(&labels, "commit", wrong[i]);
        assert_string_equal(source_link_commit(&link, &labels), "v2"); /* the next best */
    }
    labels_set(&labels, "version", "no version");
    assert_string_equal(source_link_commit(&link, &labels), "main");
}

static size_t read_links(const char *text, struct problems *problems)
{
    struct yaml_tree tree = {0};
    struct settings settings;
    struct error error = {0};
    size_t count;
    if (yaml_tree_read("c.yaml", text, strlen(text), &tree, &error) < 0)
        fail_msg("%s", error.text);
    settings_open(&settings, problems, tree.root, "the configuration");
    struct source_link *links = source_links_read(&settings, &count);
    settings_close(&settings);
    if (count && !problems->count) {
        assert_true(source_link_is_for(&links[0], "shop"));
        assert_true(source_link_is_for(&links[0], "pay-eu"));
        assert_false(source_link_is_for(&links[0], "other"));
        assert_true(count < 2 || source_link_is_for(&links[1], "other"));
    }
    free(links);
    yaml_tree_release(&tree);
    return count;
}

static void reads_settings(void **state)
{
    (void)state;
    struct problems problems = {.file = "c.yaml"};
    assert_int_equal(read_links("{}", &problems), 0);
    assert_int_equal(read_links("source_links:\n"
                                "  - {services: [shop, 'pay-*'], url: 'https://h/{path}',\n"
                                "     strip: [/build], commit_labels: [rev], commit: main}\n"
                                "  - {url: 'https://h/{path}'}\n",
                                &problems),
                     2);
    assert_int_equal(problems.count, 0);
    read_links("source_links: [{url: 'javascript:{path}'}, {strip: [x]}, {url: 'https://h/{path}', "
               "ulr: x}]",
               &problems);
    assert_int_equal(problems.count, 3);
    assert_non_null(strstr(buffer_text(&problems.text), "https:// or http://"));
    assert_non_null(strstr(buffer_text(&problems.text), "is missing"));
    assert_non_null(strstr(buffer_text(&problems.text), "ulr"));
    problems_release(&problems);
    problems = (struct problems){.file = "c.yaml"};
    read_links("source_links: 5", &problems);
    assert_int_equal(problems.count, 1);
    problems_release(&problems);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checks_templates),
        cmocka_unit_test(fills_templates),
        cmocka_unit_test(chooses_commits),
        cmocka_unit_test(reads_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
