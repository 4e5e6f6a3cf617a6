// SPDX-License-Identifier: Apache-2.0
// Names from the kernel itself: how its text is read, and that it says what /proc/kallsyms says.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "capture/bpf/kernel_names.h"
#include "symbol/kernel.h"

static void test_parse(void **state)
{
    struct symbol symbol;
    char plain[] = "do_syscall_64+0x12/0x340", module[] = "nft_do_chain+0x0/0x5f0 [nf_tables]";
    char cpp[] = "operator+(int)+0x1/0x2", bpf[] = "bpf_prog_6deef7357e7b4530_x+0x4/0x10 [bpf]";
    assert_true(kernel_names_parse(plain, 0x1012, &symbol));
    assert_string_equal(symbol.name, "do_syscall_64");
    assert_int_equal(symbol.start, 0x1000);
    assert_int_equal(symbol.distance, 0x12);
    assert_int_equal(symbol.size_bytes, 0x340);
    assert_null(symbol.module);
    assert_true(kernel_names_parse(module, 0x1000, &symbol));
    assert_string_equal(symbol.name, "nft_do_chain");
    assert_string_equal(symbol.module, "nf_tables");
    assert_true(kernel_names_parse(cpp, 0x1001, &symbol));
    assert_string_equal(symbol.name, "operator+(int)");
    char padding[] = "__pfx_vfs_read+0xf/0x10";
    assert_true(kernel_names_parse(padding, 0x100f, &symbol));
    assert_string_equal(symbol.name, "vfs_read");
    assert_true(kernel_names_parse(bpf, 0x1004, &symbol));
    assert_string_equal(symbol.module, "bpf");
    (void)state;
}

static void test_parse_nonsense(void **state)
{
    static const char *const texts[] = {"",         "0xffffffff81000000", "+0x1/0x2",
                                        "name+0x1", "name+0x2000/0x1",    "name+"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct symbol symbol;
        char text[64];
        snprintf(text, sizeof(text), "%s", texts[i]);
        assert_false(kernel_names_parse(text, 0x1000, &symbol));
    }
    (void)state;
}

/* Functions may have several names: then both must begin at the same place. */
static void test_as_kallsyms(void **state)
{
    struct error error = {0};
    struct kernel_symbols *list = NULL;
    struct kernel_names *names = kernel_names_new();
    char line[512], type;
    unsigned long long address;
    size_t asked = 0, other_name = 0, seen = 0;
    if (!names || kernel_symbols_load("/proc/kallsyms", &list, &error) < 0) {
        kernel_names_free(names);
        printf("# %s\n", names ? error.text : "this user or kernel gives no names by BPF");
        skip();
    }
    FILE *file = fopen("/proc/kallsyms", "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        struct symbol ours, theirs;
        if (sscanf(line, "%llx %c", &address, &type) != 2 || (type != 't' && type != 'T') ||
            strstr(line, "[bpf]") || strstr(line, "__pfx_") || seen++ % 97)
            continue;
        if (!kernel_symbols_find(list, address + 1, &theirs) || theirs.start != address)
            continue;
        assert_true(kernel_names_find(names, address + 1, &ours));
        assert_int_equal(ours.start, theirs.start);
        assert_int_equal(ours.distance, 1);
        asked++;
        other_name += strcmp(ours.name, theirs.name) != 0;
    }
    fclose(file);
    assert_true(asked > 100);
    assert_true(other_name * 10 < asked);
    assert_false(kernel_names_find(names, 0x1000, &(struct symbol){0}));
    kernel_symbols_free(list);
    kernel_names_free(names);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_parse_nonsense),
        cmocka_unit_test(test_as_kallsyms),
    };
    return cmocka_run_group_tests_name("kernel_names", tests, NULL, NULL);
}
