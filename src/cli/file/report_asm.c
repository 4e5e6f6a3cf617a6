// SPDX-License-Identifier: Apache-2.0
// `assay report --asm FN`: the instructions of FN, and what each of them costs.

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/file/report_asm_parts.h"
#include "io/json_write.h"
#include "profile/units.h"

static void assembly_release(struct assembly *assembly)
{
    for (size_t i = 0; i < assembly->function_count; i++)
        disassembly_release(&assembly->functions[i].code);
    recorded_code_free(assembly->code);
    buffer_release(&assembly->scratch);
    free(assembly->values);
    free(assembly->flat_of_frame);
    free(assembly->addresses);
    free(assembly->functions);
    free(assembly->rows);
    free(assembly->row_of_frame);
}

/* ---- which code ---- */

/* The frame whose code this node's is: the one that it is inlined into. 0: a filter removed it. */
static uint32_t code_frame(const struct profile *profile, uint32_t node)
{
    const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];
    uint64_t address = frame->address;
    uint32_t mapping = frame->mapping;
    while (frame->inlined && frame->address == address && frame->mapping == mapping) {
        node = profile->nodes[node].parent;
        if (!node)
            return 0;
        frame = &profile->frames[profile->nodes[node].frame];
    }
    return frame->address == address && frame->mapping == mapping ? profile->nodes[node].frame : 0;
}

static void add_own_values(struct assembly *assembly)
{
    const struct profile *profile = assembly->report->profile;
    assembly->values = profile_node_values(profile, assembly->report->type);
    assembly->flat_of_frame = memory_zalloc(profile->frame_count, sizeof(int64_t));
    for (uint32_t node = 1; node < profile->node_count; node++) {
        int64_t *flat = &assembly->flat_of_frame[code_frame(profile, node)];
        *flat = add_saturated(*flat, assembly->values[node]);
    }
}

static void lose(struct assembly *assembly, uint32_t frame, const struct error *why)
{
    assembly->lost = add_saturated(assembly->lost, assembly->flat_of_frame[frame]);
    if (!assembly->why.code)
        assembly->why = *why;
}

static int find_address(struct assembly *assembly, uint32_t id, struct recorded_place *ret_place,
                        struct error *error)
{
    const struct profile_frame *frame = &assembly->report->profile->frames[id];
    const char *name =
        assembly->report->naming->entries[assembly->report->naming->of_frame[id]].name;
    if (frame->kind == FRAME_KERNEL)
        return error_set(error, -ENOTSUP, "%s is in the kernel, whose code can't be read.", name);
    if (!frame->mapping)
        return error_set(error, -ENODATA,
                         "The profile has no addresses of %s in a binary; recordings of assay and "
                         "perf, and pprof files of native programs, have them.",
                         name);
    return recorded_code_find(assembly->code, frame->mapping, frame->address, ret_place, error);
}

static void find_addresses(struct assembly *assembly)
{
    const struct profile *profile = assembly->report->profile;
    assembly->addresses = memory_zalloc(profile->frame_count, sizeof(*assembly->addresses));
    for (uint32_t i = 1; i < profile->frame_count; i++) {
        struct asm_address *address = &assembly->addresses[assembly->address_count];
        struct error error = {0};
        if (!assembly->chosen[assembly->report->naming->of_frame[i]] || profile->frames[i].inlined)
            continue;
        address->frame = i;
        if (find_address(assembly, i, &address->place, &error) < 0)
            lose(assembly, i, &error);
        else
            assembly->address_count++;
    }
}

static int compare_addresses(const void *left, const void *right)
{
    const struct asm_address *a = left, *b = right;
    if (a->place.binary != b->place.binary)
        return a->place.binary < b->place.binary ? -1 : 1;
    if (a->place.start != b->place.start)
        return a->place.start < b->place.start ? -1 : 1;
    return a->frame < b->frame ? -1 : a->frame > b->frame;
}

static int compare_functions(const void *left, const void *right)
{
    const struct asm_function *a = left, *b = right;
    uint64_t x = magnitude(a->flat), y = magnitude(b->flat);
    if (x != y)
        return x > y ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

static void find_functions(struct assembly *assembly)
{
    struct asm_address *addresses = assembly->addresses;
    if (assembly->address_count)
        qsort(addresses, assembly->address_count, sizeof(*addresses), compare_addresses);
    assembly->functions = memory_zalloc(assembly->address_count + 1, sizeof(*assembly->functions));
    for (size_t i = 0; i < assembly->address_count; i++) {
        if (!i || addresses[i].place.binary != addresses[i - 1].place.binary ||
            addresses[i].place.start != addresses[i - 1].place.start)
            assembly->functions[assembly->function_count++].first = i;
        struct asm_function *function = &assembly->functions[assembly->function_count - 1];
        function->count++;
        function->flat = add_saturated(function->flat, assembly->flat_of_frame[addresses[i].frame]);
    }
    if (assembly->function_count)
        qsort(assembly->functions, assembly->function_count, sizeof(*assembly->functions),
              compare_functions);
}

/* ---- instructions ---- */

static size_t find_instruction(const struct disassembly *code, uint64_t address)
{
    size_t low = 0, high = code->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (code->instructions[middle].address <= address)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Those that can be read come first afterwards. */
static void read_functions(struct assembly *assembly)
{
    uint32_t frame_count = assembly->report->profile->frame_count;
    uint64_t limit = assembly->report->limit ? assembly->report->limit : UINT64_MAX;
    assembly->row_of_frame = memory_alloc(frame_count * sizeof(*assembly->row_of_frame));
    for (uint32_t i = 0; i < frame_count; i++)
        assembly->row_of_frame[i] = UINT32_MAX;
    for (size_t i = 0; i < assembly->function_count && assembly->read < limit; i++) {
        struct asm_function *function = &assembly->functions[assembly->read];
        const struct asm_address *addresses = &assembly->addresses[assembly->functions[i].first];
        struct error error = {0};
        *function = assembly->functions[i];
        if (recorded_code_read(assembly->code, &addresses[0].place, &function->code, &error) < 0) {
            for (size_t k = 0; k < function->count; k++)
                lose(assembly, addresses[k].frame, &error);
            continue;
        }
        function->row = assembly->row_count;
        assembly->row_count += function->code.count;
        for (size_t k = 0; k < function->count; k++)
            assembly->row_of_frame[addresses[k].frame] =
                (uint32_t)(function->row +
                           find_instruction(&function->code, addresses[k].place.address));
        assembly->read++;
    }
}

/* A stack counts once for an instruction, however often recursion puts it there. */
static void add_up(struct assembly *assembly)
{
    const struct profile *profile = assembly->report->profile;
    _cleanup_free_ uint32_t *stamp = memory_zalloc(assembly->row_count + 1, sizeof(*stamp));
    assembly->rows = memory_zalloc(assembly->row_count + 1, sizeof(*assembly->rows));
    for (uint32_t leaf = 1; leaf < profile->node_count; leaf++) {
        int64_t value = assembly->values[leaf];
        if (!value)
            continue;
        uint32_t at = assembly->row_of_frame[code_frame(profile, leaf)];
        if (at != UINT32_MAX)
            assembly->rows[at].flat = add_saturated(assembly->rows[at].flat, value);
        for (uint32_t node = leaf; node; node = profile->nodes[node].parent) {
            at = assembly->row_of_frame[profile->nodes[node].frame];
            if (at == UINT32_MAX || stamp[at] == leaf)
                continue;
            stamp[at] = leaf;
            assembly->rows[at].cumulative = add_saturated(assembly->rows[at].cumulative, value);
        }
    }
}

/* A function that is inlined everywhere has no code: names one that it is inlined into. */
static void explain_inlined(struct assembly *assembly)
{
    const struct profile *profile = assembly->report->profile;
    const struct naming *naming = assembly->report->naming;
    for (uint32_t node = 1; node < profile->node_count && !assembly->why.code; node++) {
        uint32_t frame = profile->nodes[node].frame, into = code_frame(profile, node);
        if (frame && into && frame != into && assembly->chosen[naming->of_frame[frame]])
            error_set(&assembly->why, -ENOENT,
                      "%s is inlined wherever it has samples, for example into %s: give that.",
                      naming->entries[naming->of_frame[frame]].name,
                      naming->entries[naming->of_frame[into]].name);
    }
}

static void write_notes(struct assembly *assembly)
{
    _cleanup_buffer_ struct buffer lost = {0};
    if (assembly->read < assembly->function_count && assembly->report->limit == assembly->read)
        log_warning("%zu of %zu functions are shown; --top 0 shows all.", assembly->read,
                    assembly->function_count);
    if (!assembly->why.code)
        return;
    units_add(&lost, &units_terminal, (double)assembly->lost, report_unit(assembly->report));
    log_warning("Code of %s is not shown: %s", buffer_text(&lost), assembly->why.text);
}

/* Finds the instructions and adds up; false when there are none, and then why. */
static bool collect(struct assembly *assembly)
{
    assembly->code = recorded_code_new(assembly->report->profile);
    add_own_values(assembly);
    find_addresses(assembly);
    find_functions(assembly);
    read_functions(assembly);
    if (assembly->read)
        add_up(assembly);
    else
        explain_inlined(assembly);
    return assembly->read > 0;
}

int report_asm(struct report *report, const bool *chosen, const char *name)
{
    _cleanup_(assembly_release) struct assembly assembly = {.report = report, .chosen = chosen};
    if (!collect(&assembly)) {
        log_error("%s: %s", report->title, assembly.why.text);
        return EXIT_FAILED;
    }
    if (report->format == TABLE_TEXT)
        assembly_write_text(&assembly);
    else
        assembly_write_data(&assembly, name, "");
    write_notes(&assembly);
    return 0;
}

int report_asm_json(struct report *report, const bool *chosen, const char *name,
                    struct error *error)
{
    _cleanup_(assembly_release) struct assembly assembly = {.report = report, .chosen = chosen};
    _cleanup_buffer_ struct buffer head = {0};
    report->format = TABLE_JSON;
    if (!collect(&assembly))
        return error_set(error, -ENOENT, "%s", assembly.why.text);
    struct json_writer members = json_writer(&head);
    json_member_unsigned(&members, "functions", assembly.function_count);
    json_member_unsigned(&members, "read", assembly.read);
    json_member_signed(&members, "lost", assembly.lost);
    json_member_text(&members, "why", assembly.why.text);
    assembly_write_data(&assembly, name, buffer_text(&head));
    return 0;
}
