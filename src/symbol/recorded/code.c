// SPDX-License-Identifier: Apache-2.0
// The code of a profile's functions: see code.h.

#include "symbol/recorded/code.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "symbol/debugfile.h"
#include "symbol/naming/symbolizer.h"
#include "symbol/recorded/binaries.h"

#define BINARIES_MAX 256 /* each has a file open */

struct binary {
    const char *file, *build_id; /* as the profile has them */
    char path[RECORDED_PATH_BYTES];
    struct elf_file elf;
    struct symbolizer_file *symbols; /* NULL: the binary can't be used, because: */
    struct error error;
};

struct recorded_code {
    const struct profile *profile;
    struct symbolizer *symbolizer;
    struct binary **binaries;
    size_t count, capacity;
    uint32_t *of_mapping; /* UINT32_MAX: not looked for yet */
};

struct recorded_code *recorded_code_new(const struct profile *profile)
{
    struct recorded_code *code = memory_zalloc(1, sizeof(*code));
    code->profile = profile;
    code->symbolizer = symbolizer_new();
    code->of_mapping = memory_alloc(profile->mapping_count * sizeof(*code->of_mapping));
    for (uint32_t i = 0; i < profile->mapping_count; i++)
        code->of_mapping[i] = UINT32_MAX;
    return code;
}

void recorded_code_free(struct recorded_code *code)
{
    if (!code)
        return;
    for (size_t i = 0; i < code->count; i++) {
        if (code->binaries[i]->symbols)
            elf_release(&code->binaries[i]->elf);
        free(code->binaries[i]);
    }
    symbolizer_free(code->symbolizer);
    free(code->binaries);
    free(code->of_mapping);
    free(code);
}

/* Why there is no such binary. */
static void explain(struct binary *binary)
{
    struct error why = {0};
    struct elf_file other;
    char build_id[BUILD_ID_TEXT_BYTES];
    if (!binary->file[0]) {
        error_set(&binary->error, -ENOENT, "The profile doesn't name the binary of this code.");
    } else if (binary->file[0] != '/') {
        error_set(&binary->error, -ENOENT, "%s is not a file of this machine.", binary->file);
    } else if (elf_open(binary->file, &other, &why) < 0) {
        error_set(&binary->error, why.code, "%s: %s", binary->file, why.text);
    } else {
        build_id_text(&other, build_id);
        elf_release(&other);
        error_set(&binary->error, -ESTALE,
                  "%s has the build ID %s, but the profile is of %s: report on the machine that "
                  "has this build.",
                  binary->file, build_id[0] ? build_id : "(none)", binary->build_id);
    }
}

static struct binary *open_binary(struct recorded_code *code, const char *file,
                                  const char *build_id)
{
    struct binary *binary = memory_zalloc(1, sizeof(*binary));
    binary->file = file;
    binary->build_id = build_id;
    if (!recorded_open(&(struct recorded_binary){.path = file, .build_id = build_id}, &binary->elf,
                       binary->path)) {
        explain(binary);
        return binary;
    }
    binary->symbols = symbolizer_file(code->symbolizer, binary->path, build_id);
    if (!binary->symbols) {
        elf_release(&binary->elf);
        error_set(&binary->error, -EIO, "The symbols of %s can't be read.", binary->path);
    }
    return binary;
}

/* UINT32_MAX when there are too many. */
static uint32_t find_binary(struct recorded_code *code, uint32_t mapping_id)
{
    const struct profile_mapping *mapping = &code->profile->mappings[mapping_id];
    const char *file = profile_text(code->profile, mapping->file);
    const char *build_id = profile_text(code->profile, mapping->build_id);
    uint32_t *found = &code->of_mapping[mapping_id];
    for (size_t i = 0; *found == UINT32_MAX && i < code->count; i++)
        if (!strcmp(code->binaries[i]->build_id, build_id) &&
            !strcmp(code->binaries[i]->file, file))
            *found = (uint32_t)i;
    if (*found == UINT32_MAX && code->count < BINARIES_MAX) {
        array_reserve(code->binaries, code->capacity, code->count + 1);
        code->binaries[code->count] = open_binary(code, file, build_id);
        *found = (uint32_t)code->count++;
    }
    return *found;
}

int recorded_code_find(struct recorded_code *code, uint32_t mapping, uint64_t offset,
                       struct recorded_place *ret_place, struct error *error)
{
    uint32_t number = find_binary(code, mapping);
    struct symbol symbol;
    uint64_t address = offset;
    if (number == UINT32_MAX)
        return error_set(error, -E2BIG, "It is in more than %d binaries.", BINARIES_MAX);
    const struct binary *binary = code->binaries[number];
    if (!binary->symbols)
        return error_set(error, binary->error.code, "%s", binary->error.text);
    bool by_address = code->profile->mappings[mapping].offset == PROFILE_BY_ADDRESS;
    if ((by_address && !elf_address_to_offset(&binary->elf, address, &offset)) ||
        (!by_address && !elf_offset_to_address(&binary->elf, offset, &address)))
        return error_set(error, -ENOENT,
                         "%s has no code at offset 0x%" PRIx64 ", where the profile has samples.",
                         binary->path, offset);
    if (!symbolizer_file_find(binary->symbols, offset, &symbol) || !symbol.size_bytes)
        return error_set(error, -ENOENT,
                         "%s doesn't say which function 0x%" PRIx64
                         " is in: install its debug symbols.",
                         binary->path, address);
    *ret_place = (struct recorded_place){.binary = number,
                                         .address = address,
                                         .start = symbol.start,
                                         .size_bytes = symbol.size_bytes,
                                         .name = symbol.name};
    return 0;
}

static void want_lines(struct recorded_code *code, struct binary *binary,
                       const struct disassembly *disassembly)
{
    uint64_t *offsets = memory_alloc(disassembly->count * sizeof(*offsets));
    size_t count = 0;
    for (size_t i = 0; i < disassembly->count; i++)
        if (elf_address_to_offset(&binary->elf, disassembly->instructions[i].address,
                                  &offsets[count]))
            count++;
    symbolizer_want(binary->symbols, offsets, count);
    symbolizer_look_up(code->symbolizer);
    free(offsets);
}

int recorded_code_read(struct recorded_code *code, const struct recorded_place *place,
                       struct disassembly *ret_disassembly, struct error *error)
{
    struct binary *binary = code->binaries[place->binary];
    if (place->size_bytes > DISASSEMBLY_BYTES_MAX)
        return error_set(error, -E2BIG,
                         "%s: the function at 0x%" PRIx64 " has %" PRIu64
                         " bytes of code; the limit is %u.",
                         binary->path, place->start, place->size_bytes, DISASSEMBLY_BYTES_MAX);
    _cleanup_free_ void *bytes = memory_alloc((size_t)place->size_bytes);
    int r = elf_read_address(&binary->elf, place->start, bytes, (size_t)place->size_bytes);
    if (r < 0)
        return error_set(
            error, r, "%s is truncated: it doesn't have the code of the function at 0x%" PRIx64 ".",
            binary->path, place->start);
    r = disassembly_make(bytes, (size_t)place->size_bytes, place->start, ret_disassembly, error);
    if (r < 0)
        return error_prefix(error, "%s", binary->path);
    want_lines(code, binary, ret_disassembly);
    return 0;
}

size_t recorded_code_frames(struct recorded_code *code, uint32_t binary, uint64_t address,
                            struct symbol_frame ret_frames[SYMBOL_FRAMES_MAX])
{
    uint64_t offset;
    return elf_address_to_offset(&code->binaries[binary]->elf, address, &offset)
               ? symbolizer_file_frames(code->binaries[binary]->symbols, offset, ret_frames)
               : 0;
}

bool recorded_code_name(struct recorded_code *code, uint32_t binary, uint64_t address,
                        struct symbol *ret_symbol)
{
    uint64_t offset;
    return elf_address_to_offset(&code->binaries[binary]->elf, address, &offset) &&
           symbolizer_file_find(code->binaries[binary]->symbols, offset, ret_symbol) &&
           ret_symbol->name;
}

const char *recorded_code_path(const struct recorded_code *code, uint32_t binary)
{
    return code->binaries[binary]->path;
}

const char *recorded_code_build_id(const struct recorded_code *code, uint32_t binary)
{
    return code->binaries[binary]->build_id;
}
