// SPDX-License-Identifier: Apache-2.0
// What an agent does with files that its server asks for, and what it doesn't.

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/symbols_parts.h"
#include "base/memory.h"
#include "symbol/store/store.h"
#include "unit.h"

/* Nobody listens there. */
static struct agent_settings settings = {.server_url = (char *)"http://127.0.0.1:1/",
                                         .symbols_file_bytes = 1u << 30,
                                         .budget_symbols_bytes = 1u << 20};

static struct agent_symbols *start(void)
{
    struct agent_symbols *symbols;
    struct error error = {0};
    assert_int_equal(agent_symbols_start(&settings, "me", NULL, &symbols, &error), 0);
    return symbols;
}

static int read_text(struct agent_symbols *symbols, const char *text)
{
    struct source source;
    struct json json;
    assert_int_equal(source_open_memory(&source, "test", text, strlen(text), 1u << 20, NULL), 0);
    json_init(&json, &source, NULL);
    int r = agent_symbols_read(symbols, &json);
    json_release(&json);
    source_release(&source);
    return r;
}

/* As a window does that has samples of it. */
static struct held_file *offer(struct agent_symbols *symbols, const char *key)
{
    struct held_file *held = &symbols->held[0];
    pthread_mutex_lock(&symbols->lock);
    *held = (struct held_file){.state = HELD_OFFERED,
                               .fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
                               .path = memory_strdup("/proc/self/exe"),
                               .name = memory_strdup("a b"),
                               .since_ns = INT64_MAX};
    snprintf(held->key, sizeof(held->key), "%s", key);
    pthread_mutex_unlock(&symbols->lock);
    return held;
}

static void own_key(char key[SYMBOL_KEY_BYTES])
{
    _cleanup_elf_ struct elf_file file = {.fd = -1};
    struct symbol_identity identity;
    assert_int_equal(elf_open("/proc/self/exe", &file, NULL), 0);
    assert_int_equal(symbol_identify(&file, &identity, NULL), 0);
    strcpy(key, identity.key);
}

static void order(struct agent_symbols *symbols, const char *key)
{
    char text[SYMBOL_KEY_BYTES + 32];
    snprintf(text, sizeof(text), "{\"send\":[\"%s\"]}", key);
    assert_int_equal(read_text(symbols, text), 0);
}

static void wait_for_refusal(struct agent_symbols *symbols)
{
    while (!agent_symbols_stats(symbols).refused)
        usleep(1000);
}

/* A report's part. */
static void write_report(struct agent_symbols *symbols, struct buffer *out)
{
    struct json_writer json = json_writer(out);
    agent_symbols_write(symbols, &json);
}

static void nothing_is_sent_unasked(void **state)
{
    (void)state;
    struct buffer out = {0};
    struct agent_symbols *symbols = start();
    write_report(symbols, &out);
    assert_int_equal(out.length, 0);
    assert_int_equal(read_text(symbols, "{\"wanted\":[\"AB01\",\"ab01\",\"cd02\"],\"more\":{}}"),
                     0);
    assert_int_equal(agent_symbols_stats(symbols).wanted, 2);
    /* What isn't at hand can't be ordered. */
    order(symbols, "ab01");
    assert_int_equal(agent_symbols_stats(symbols).asked, 0);
    offer(symbols, "ab01");
    write_report(symbols, &out);
    assert_string_equal(buffer_text(&out), "\"symbols\":[{\"build_id\":\"ab01\",\"state\":\"have\","
                                           "\"reason\":\"\"}]");
    buffer_release(&out);
    agent_symbols_stop(symbols);
    settings.symbols = SYMBOLS_NONE;
    assert_int_equal(agent_symbols_start(&settings, "me", NULL, &symbols, NULL), 0);
    settings.symbols = SYMBOLS_DEBUG;
    assert_null(symbols);
    assert_int_equal(read_text(symbols, "{\"wanted\":[\"ab01\"],\"send\":[\"ab01\"]}"), 0);
    assert_false(agent_symbols_look(symbols, NULL, NULL));
    agent_symbols_stop(symbols);
}

/* Another build than the server thinks: a file that was written over. */
static void another_file_is_not_sent(void **state)
{
    (void)state;
    struct buffer out = {0};
    struct agent_symbols *symbols = start();
    offer(symbols, "ab01");
    order(symbols, "ab01");
    wait_for_refusal(symbols);
    write_report(symbols, &out);
    assert_non_null(strstr(buffer_text(&out), "\"state\":\"refused\",\"reason\":\"The file "
                                              "changed: its build ID"));
    /* It is said once, and the file is closed. */
    out.length = 0;
    write_report(symbols, &out);
    assert_int_equal(out.length, 0);
    assert_int_equal(symbols->held[0].state, HELD_NONE);
    buffer_release(&out);
    agent_symbols_stop(symbols);
}

static void too_large_is_not_sent(void **state)
{
    (void)state;
    char key[SYMBOL_KEY_BYTES];
    struct agent_symbols *symbols = start();
    settings.symbols_file_bytes = 100;
    own_key(key);
    offer(symbols, key);
    order(symbols, key);
    wait_for_refusal(symbols);
    settings.symbols_file_bytes = 1u << 30;
    assert_non_null(strstr(agent_symbols_stats(symbols).error, "symbols.file_limit"));
    agent_symbols_stop(symbols);
}

/* It isn't told as a refusal: the lease ends, and whoever is asked next may do better. */
static void a_server_that_is_away(void **state)
{
    (void)state;
    char key[SYMBOL_KEY_BYTES];
    struct buffer out = {0};
    struct agent_symbols *symbols = start();
    own_key(key);
    offer(symbols, key);
    order(symbols, key);
    wait_for_refusal(symbols);
    assert_non_null(strstr(agent_symbols_stats(symbols).error, "Failed to connect"));
    write_report(symbols, &out);
    assert_int_equal(out.length, 0);
    assert_string_equal(symbols->refused[0].key, key);
    buffer_release(&out);
    agent_symbols_stop(symbols);
}

static void answers_that_are_none(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        "[]",
                                        "{\"wanted\":{}}",
                                        "{\"wanted\":[1]}",
                                        "{\"send\":[\"ab01\"",
                                        "{\"send\":\"ab01\"}",
                                        "{\"wanted\":[null]}"};
    struct agent_symbols *symbols = start();
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++)
        assert_true(read_text(symbols, wrong[i]) < 0);
    /* What is no build, or too many of them. */
    _cleanup_buffer_ struct buffer many = {0};
    assert_int_equal(read_text(symbols, "{\"wanted\":[\"\",\"x\\u0000y\",\"a\"]}"), 0);
    assert_int_equal(agent_symbols_stats(symbols).wanted, 0);
    buffer_add_text(&many, "{\"wanted\":[");
    for (int i = 0; i < 5000; i++)
        buffer_printf(&many, "%s\"%08x\"", i ? "," : "", (unsigned)i);
    buffer_add_text(&many, "]}");
    assert_int_equal(read_text(symbols, buffer_text(&many)), 0);
    assert_int_equal(agent_symbols_stats(symbols).wanted, SYMBOLS_WANTED_MAX);
    agent_symbols_stop(symbols);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_sent_unasked), cmocka_unit_test(another_file_is_not_sent),
        cmocka_unit_test(too_large_is_not_sent),   cmocka_unit_test(a_server_that_is_away),
        cmocka_unit_test(answers_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
