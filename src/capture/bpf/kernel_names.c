// SPDX-License-Identifier: Apache-2.0
// Asking a BPF program for names: see kernel_names.h.

#include "capture/bpf/kernel_names.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>
#include <sys/mman.h>

#include "base/buffer.h"
#include "base/log.h"
#include "base/memory.h"
#include "bpf/names.h"
#include "capture/bpf/object.h"
#include "profile/names/demangle.h"
#include "symbol/kernel.h"

struct kernel_names {
    struct bpf_object *object;
    int program;
    struct bpf_name_query_context *query_context; /* in memory that the kernel sees */
    char text[sizeof(((struct bpf_name_query_context *)NULL)->answer)];
    struct buffer readable;
};

static int load(struct kernel_names *names)
{
    LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "assay_names");
    names->object = bpf_object__open_mem(bpf_names_object, bpf_names_object_length, &options);
    if (!names->object)
        return -errno;
    int r = bpf_object__load(names->object);
    if (r < 0)
        return r;
    int map = bpf_object__find_map_fd_by_name(names->object, ".bss");
    struct bpf_program *program = bpf_object__find_program_by_name(names->object, "assay_name");
    if (map < 0 || !program)
        return -EINVAL;
    void *memory =
        mmap(NULL, sizeof(*names->query_context), PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
    if (memory == MAP_FAILED)
        return -errno;
    names->query_context = memory;
    names->program = bpf_program__fd(program);
    return 0;
}

struct kernel_names *kernel_names_new(void)
{
    struct kernel_names *names = memory_zalloc(1, sizeof(*names));
    libbpf_set_print(NULL);
    int r = load(names);
    if (!r)
        return names;
    log_debug("Failed to get kernel symbols through BPF: %s.", strerror(-r));
    kernel_names_free(names);
    return NULL;
}

void kernel_names_free(struct kernel_names *names)
{
    if (!names)
        return;
    if (names->query_context)
        munmap(names->query_context, sizeof(*names->query_context));
    bpf_object__close(names->object);
    buffer_release(&names->readable);
    free(names);
}

bool kernel_names_parse(char *text, uint64_t address, struct symbol *ret_symbol)
{
    char *plus = strrchr(text, '+'), *rest;
    if (!plus || plus == text)
        return false; /* just the address: it belongs to nothing */
    uint64_t distance = strtoull(plus + 1, &rest, 16);
    if (*rest != '/' || distance > address)
        return false;
    *plus = 0;
    *ret_symbol = (struct symbol){.name = kernel_function_name(text),
                                  .start = address - distance,
                                  .size_bytes = strtoull(rest + 1, &rest, 16),
                                  .distance = distance};
    char *end = strchr(rest, ']');
    if (rest[0] == ' ' && rest[1] == '[' && end) {
        *end = 0;
        ret_symbol->module = rest + 2;
    }
    return true;
}

bool kernel_names_find(void *context, uint64_t address, struct symbol *ret_symbol)
{
    struct kernel_names *names = context;
    LIBBPF_OPTS(bpf_test_run_opts, run);
    names->query_context->address = address;
    if (bpf_prog_test_run_opts(names->program, &run) < 0 || (int)run.retval < 0)
        return false;
    memcpy(names->text, names->query_context->answer, sizeof(names->text));
    names->text[sizeof(names->text) - 1] = 0;
    if (!kernel_names_parse(names->text, address, ret_symbol))
        return false;
    names->readable.length = 0;
    if (demangle(ret_symbol->name, &names->readable)) {
        ret_symbol->system_name = ret_symbol->name;
        ret_symbol->name = buffer_text(&names->readable);
    }
    return true;
}
